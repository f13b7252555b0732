"""Bodies of requests: no larger, and no slower, than what the API is for. Before anybody is asked who they are."""

import asyncio

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuledger.api import problems

BYTES_MAX = 16 * 2**20
"""Ten thousand events are a quarter of it."""

PATIENCE_S = 30
"""How long the next piece of a body is waited for: a connection that is kept open and says nothing costs a worker."""

_TOO_LARGE, _TOO_SLOW = 413, 408


class BoundedBody:
    """ASGI middleware: end a request whose body is too large or does not come.

    Args:
        app: What answers the others.
        bytes_max: The largest body.
        patience_s: How long the next piece is waited for.
    """

    def __init__(self, app: ASGIApp, bytes_max: int = BYTES_MAX, patience_s: float = PATIENCE_S) -> None:
        self._app, self._bytes_max, self._patience_s = app, bytes_max, patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > self._bytes_max:
            await self._refusal(scope["path"])(scope, receive, send)
            return
        seen, whole = 0, False

        async def bounded() -> Message:
            nonlocal seen, whole
            if whole:  # who waits for the end of the connection may wait
                return await receive()
            try:
                async with asyncio.timeout(self._patience_s):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(_TOO_SLOW, f"the body stood still for {self._patience_s} s") from error
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > self._bytes_max:
                raise HTTPException(_TOO_LARGE, self._told())
            return message

        await self._app(scope, bounded, send)

    def _told(self) -> str:
        return f"the body is larger than {self._bytes_max} bytes: send it in parts"

    def _refusal(self, path: str) -> Response:
        return problems.answer(path, problems.OTHER, self._told(), status=_TOO_LARGE)
