"""The head of a request: no larger, and no slower, than a request line with its headers needs to be.

It is read before there is a request that anything of ours could refuse. One parser of the server bounds its size by
itself, and never its time; the fast one takes what comes, and gets both bounds here.
"""

import asyncio
from typing import Any

HEAD_BYTES_MAX = 32 * 2**10
"""A token, a path of a thousand letters and what a proxy adds are a tenth of it."""

HEAD_PATIENCE_S = 20
"""How long a connection may take to say what it wants."""


def protocol() -> Any:  # noqa: ANN401, C901 - a class that is there where its parser is, or a name
    """Return what ``uvicorn`` is to parse requests with: the fast parser with bounds, where it is installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"  # bounded by ``h11_max_incomplete_event_size``

    class BoundedHead(HttpToolsProtocol):
        """Ends a connection whose request has no end of headers."""

        _in_head, _head_bytes = False, 0
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as in the base class
            super().connection_made(transport)
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._in_head or self.transport.is_closing():
                return
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response(f"the head of the request is larger than {HEAD_BYTES_MAX} bytes")

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head, self._head_bytes = True, 0
            self._wait()

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop_waiting()
            super().on_headers_complete()

        def _wait(self) -> None:
            self._stop_waiting()
            self._timer = self.loop.call_later(HEAD_PATIENCE_S, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return BoundedHead
