"""How the API is asked: bounded in time and tries, errors by what the caller can do."""

import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, Self, TypeVar

import httpx2
import msgspec

from gpuledger.client import answers
from gpuledger.kernel.errors import (
    Conflict,
    Corrupt,
    Forbidden,
    GpuledgerError,
    KeyReused,
    NotFound,
    Refused,
    Unavailable,
    Unidentified,
)
from gpuledger.kernel.retries import retry_context

_TIMEOUT = httpx2.Timeout(10, connect=2)
_ATTEMPTS = 3
_PATIENCE_S = 12.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

A = TypeVar("A", bound=answers.Answer)
Moment = dt.date | dt.datetime
Parameter = str | int | Moment | None


class Transport:
    """Sends questions and orders; safe to share between threads.

    Args:
        base_url: Where the API answers, such as ``http://127.0.0.1:8080``.
        token: The text of a token; none where the API is open.
        transport: Another way to reach it, for tests.
    """

    def __init__(
        self, base_url: str, token: str | None = None, *, transport: httpx2.BaseTransport | None = None
    ) -> None:
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
        self._http = httpx2.Client(
            base_url=self.base_url,
            timeout=_TIMEOUT,
            transport=transport,
            # A proxy for the internet must not stand between two processes of one machine.
            trust_env=url.host not in _LOOPBACK,
            headers={"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {}),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _get(self, kind: type[A], path: str, **parameters: Parameter) -> A:
        given = {name: _text(value) for name, value in parameters.items() if value is not None}
        return self._read(kind, path, self._send("GET", path, params=given))

    def _post(
        self,
        kind: type[A],
        path: str,
        body: Mapping[str, object],
        *,
        key: str | None = None,
        dry_run: bool = False,
    ) -> A:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or str(uuid.uuid4())}
        params = {"dry_run": "true"} if dry_run else {}
        sent = self._send("POST", path, params=params, content=msgspec.json.encode(body), headers=headers)
        return self._read(kind, path, sent)

    def _read(self, kind: type[A], path: str, response: httpx2.Response) -> A:
        if response.is_success:
            try:
                return msgspec.json.decode(response.content, type=kind)
            except msgspec.DecodeError as error:
                raise Unavailable(
                    f"what answers at {self.base_url}{path} is not the ledger API of this version: {error}",
                    hint="check GPULEDGER_API_URL, and upgrade the older side",
                ) from error
        raise _error(self.base_url, path, response)

    def _send(self, method: str, path: str, **sent: Any) -> httpx2.Response:  # noqa: ANN401 - what httpx2 takes
        try:
            for attempt in retry_context(
                on=httpx2.NetworkError, attempts=_ATTEMPTS, timeout=_PATIENCE_S, wait_max=0.5, wait_jitter=0.1
            ):
                with attempt:
                    return self._http.request(method, path, **sent)
        except httpx2.TransportError as error:
            raise Unavailable(
                f"the ledger API at {self.base_url} cannot be reached: {error}",
                hint="gpuledger serve starts it; GPULEDGER_API_URL says where it is",
            ) from error
        raise AssertionError("retry_context returns or raises")  # pragma: no cover


def _text(value: str | int | Moment) -> str:
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise Refused(f"instant {value} has no zone", hint="give it one, such as datetime.UTC")
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def _error(base_url: str, path: str, response: httpx2.Response) -> GpuledgerError:
    try:
        problem = msgspec.json.decode(response.content, type=answers.Problem)
    except msgspec.DecodeError:
        return Unavailable(
            f"what answers at {base_url}{path} is not the ledger API: HTTP {response.status_code}",
            hint="check GPULEDGER_API_URL",
        )
    match response.status_code:
        case 401:
            return Unidentified(problem.detail, hint=problem.hint)
        case 403:
            return Forbidden(problem.detail, hint=problem.hint)
        case 404:
            return NotFound(problem.detail, hint=problem.hint)
        case 409 if problem.type.endswith("/key-reused"):
            return KeyReused(problem.detail, hint=problem.hint)
        case 409:
            return Conflict(problem.detail, hint=problem.hint)
        case 503:
            return Unavailable(problem.detail, hint=problem.hint)
        case status if status >= 500:  # noqa: PLR2004 - the server's own faults
            return Corrupt(problem.detail, hint=problem.hint)
        case _:
            return Refused(problem.detail, hint=problem.hint)
