"""Bodies of requests: no larger, and no slower, than what a path is for. Before anybody is asked who they are."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuledger.api import problems

BYTES_MAX = 64 * 2**10
"""An order or an admission is a hundredth of it. It is read before anybody is asked who they are."""

EVENTS_BYTES_MAX = 16 * 2**20
"""Ten thousand events are a quarter of it. They are read once it is known who sends them."""

PATIENCE_S = 30
"""How long the next piece of a body is waited for: a connection that is kept open and says nothing costs a worker."""

_TOO_LARGE, _TOO_SLOW = 413, 408


class BoundedBody:
    """ASGI middleware: end a request whose body is too large or does not come.

    Args:
        app: What answers the others.
        larger: Path -> the largest body that it takes, where that is more than others take.
        bytes_max: The largest body of the others.
        patience_s: How long the next piece is waited for.
    """

    def __init__(
        self,
        app: ASGIApp,
        larger: Mapping[str, int] = MappingProxyType({}),
        *,
        bytes_max: int = BYTES_MAX,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._app, self._larger, self._bytes_max, self._patience_s = app, larger, bytes_max, patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._larger.get(scope["path"], self._bytes_max)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > most:
            refusal = problems.answer(scope["path"], problems.OTHER, _told(most), status=_TOO_LARGE)
            await refusal(scope, receive, send)
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
            if seen > most:
                raise HTTPException(_TOO_LARGE, _told(most))
            return message

        await self._app(scope, bounded, send)


def _told(most: int) -> str:
    return f"the body is larger than {most} bytes: send it in parts"
