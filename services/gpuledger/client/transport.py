"""How the API is asked: for whoever waits and for whoever awaits the answer, bounded in time and tries."""

from pathlib import Path
from typing import Any, Self, TypedDict

import httpx2

from gpuledger.client.asking import A, Ask
from gpuledger.client.exports import Export, write, write_awaited
from gpuledger.client.reading import error_of, read
from gpuledger.kernel.errors import Refused, Unavailable, Unidentified
from gpuledger.kernel.retries import retry_context

_TIMEOUT = httpx2.Timeout(10, connect=2)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Bounds(TypedDict):
    """How often, and for how long, a connection is tried."""

    on: type[Exception]
    attempts: int
    timeout: float
    wait_max: float
    wait_jitter: float


_BOUNDS: _Bounds = {
    "on": httpx2.NetworkError, "attempts": 3, "timeout": 12.0, "wait_max": 0.5, "wait_jitter": 0.1
}  # fmt: skip


class _Connection:
    """Where the API is, and what every request of a client carries."""

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base_url = base_url.rstrip("/")
        try:
            url = httpx2.URL(self.base_url)
        except httpx2.InvalidURL as error:
            raise Refused(f"API address {base_url!r} is not a URL", hint="set GPULEDGER_API_URL") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise Refused(
                f"API address {base_url!r} is not an http address",
                hint="set GPULEDGER_API_URL, such as http://127.0.0.1:8080",
            )
        if token and not (token.isascii() and token.isprintable()):
            raise Unidentified(
                "the token holds characters that no token has",
                hint="copy it once more: the line that gpuledger token create printed",
            )
        self._settings: dict[str, Any] = {
            "base_url": self.base_url,
            "timeout": _TIMEOUT,
            # A proxy for the internet must not stand between two processes of one machine.
            "trust_env": url.host not in _LOOPBACK,
            "headers": {"Accept": "application/json"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
        }

    def _unreached(self, error: httpx2.TransportError) -> Unavailable:
        return Unavailable(
            f"the ledger API at {self.base_url} cannot be reached: {error}",
            hint="gpuledger serve starts it; GPULEDGER_API_URL says where it is",
        )


class Transport(_Connection):
    """Sends questions and orders, and waits; safe to share between threads.

    Args:
        base_url: Where the API answers, such as ``http://127.0.0.1:8080``.
        token: The text of a token; none where the API is open.
        transport: Another way to reach it, for tests.
    """

    def __init__(
        self, base_url: str, token: str | None = None, *, transport: httpx2.BaseTransport | None = None
    ) -> None:
        super().__init__(base_url, token)
        self._http = httpx2.Client(transport=transport, **self._settings)

    def ask(self, ask: Ask[A], /) -> A:
        """Send a request, again where the connection broke, and return its answer.

        Raises:
            Unavailable: When it cannot be reached, or what answers is not the ledger API.
            GpuledgerError: What it was refused with.
        """
        return read(self.base_url, ask, self._send(ask))

    def export(self, export: Export, to: Path) -> int:
        """Write a table into a file, whole or not at all; return its bytes. A connection that broke begins anew.

        Raises:
            Unavailable: When the API cannot be reached, or the table ended early.
            Refused: When the file cannot be written.
            GpuledgerError: What it was refused with.
        """
        try:
            for attempt in retry_context(**_BOUNDS):
                with attempt, self._http.stream("GET", export.path, params=export.params) as response:
                    if not response.is_success:
                        response.read()
                        raise error_of(self.base_url, export.path, response)
                    return write(to, response.iter_bytes())
        except httpx2.TransportError as error:
            raise self._unreached(error) from error
        raise AssertionError("retry_context returns or raises")  # pragma: no cover

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _send(self, ask: Ask[A]) -> httpx2.Response:
        try:
            for attempt in retry_context(**_BOUNDS):
                with attempt:
                    return self._http.request(
                        ask.method, ask.path, params=ask.params, content=ask.content, headers=ask.headers
                    )
        except httpx2.TransportError as error:
            raise self._unreached(error) from error
        raise AssertionError("retry_context returns or raises")  # pragma: no cover


class AsyncTransport(_Connection):
    """Sends questions and orders for asyncio; many may be under way at once.

    Args:
        base_url: Where the API answers, such as ``http://127.0.0.1:8080``.
        token: The text of a token; none where the API is open.
        transport: Another way to reach it, for tests.
    """

    def __init__(
        self, base_url: str, token: str | None = None, *, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(base_url, token)
        self._http = httpx2.AsyncClient(transport=transport, **self._settings)

    async def ask(self, ask: Ask[A], /) -> A:
        """Send a request, again where the connection broke, and return its answer; raises as ``Transport.ask``."""
        return read(self.base_url, ask, await self._send(ask))

    async def export(self, export: Export, to: Path) -> int:
        """Write a table into a file; as ``Transport.export``."""
        try:
            async for attempt in retry_context(**_BOUNDS):
                with attempt:
                    async with self._http.stream("GET", export.path, params=export.params) as response:
                        if not response.is_success:
                            await response.aread()
                            raise error_of(self.base_url, export.path, response)
                        return await write_awaited(to, response.aiter_bytes())
        except httpx2.TransportError as error:
            raise self._unreached(error) from error
        raise AssertionError("retry_context returns or raises")  # pragma: no cover

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _send(self, ask: Ask[A]) -> httpx2.Response:
        try:
            async for attempt in retry_context(**_BOUNDS):
                with attempt:
                    return await self._http.request(
                        ask.method, ask.path, params=ask.params, content=ask.content, headers=ask.headers
                    )
        except httpx2.TransportError as error:
            raise self._unreached(error) from error
        raise AssertionError("retry_context returns or raises")  # pragma: no cover
