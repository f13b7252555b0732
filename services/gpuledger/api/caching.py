"""Cheap validation: an answer carries a hash of what it says, and is not sent twice to who has it.

The tag is weak and leaves ``as_of`` out: the same figures an hour later are the same answer.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

VOLATILE = "as_of"


class TaggedResponse(JSONResponse):
    """JSON with a weak ETag over everything but the instant it speaks of."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - any JSON
        """Return the bytes; leave the tag for ``init_headers``."""
        body = super().render(content)
        said = body
        if isinstance(content, Mapping) and VOLATILE in content:
            said = super().render({name: value for name, value in content.items() if name != VOLATILE})
        self._tag = f'W/"{hashlib.sha256(said).hexdigest()[:32]}"'
        return body

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Add the tag; caches must ask again each time."""
        super().init_headers({"ETag": self._tag, "Cache-Control": "private, no-cache", **(headers or {})})


class NotModified:
    """ASGI middleware: answer 304 without a body where If-None-Match names the answer's tag."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        wanted = Headers(scope=scope).get("if-none-match", "") if scope["type"] == "http" else ""
        if not wanted or scope["method"] not in {"GET", "HEAD"}:
            await self._app(scope, receive, send)
            return
        tags = {tag.strip().removeprefix("W/") for tag in wanted.split(",")}
        matched = False

        async def conditional(message: Message) -> None:
            nonlocal matched
            if message["type"] == "http.response.start" and message["status"] == 200:  # noqa: PLR2004
                headers = MutableHeaders(scope=message)
                tag = headers.get("etag", "").removeprefix("W/")
                matched = bool(tag) and (tag in tags or "*" in tags)
                if matched:
                    message["status"] = 304
                    del headers["content-length"]
                    del headers["content-type"]
            elif matched and message["type"] == "http.response.body":
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        await self._app(scope, receive, conditional)
