"""The client: one method per path, bounded in time and tries, errors by what the caller can do."""

import datetime as dt
from typing import Self, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from gpuledger.client import answers
from gpuledger.kernel.errors import Conflict, Corrupt, GpuledgerError, NotFound, Refused, Unavailable
from gpuledger.kernel.retries import retry_context

_TIMEOUT = httpx2.Timeout(10, connect=2)
_ATTEMPTS = 3
_PATIENCE_S = 12.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

A = TypeVar("A", bound=answers.Answer)
Moment = dt.date | dt.datetime
Parameter = str | int | Moment | None


class LedgerClient:
    """Reads the ledger API; safe to share between threads.

    Args:
        base_url: Where the API answers, such as ``http://127.0.0.1:8080``.
        transport: Another way to reach it, for tests.
    """

    def __init__(self, base_url: str, *, transport: httpx2.BaseTransport | None = None) -> None:
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
        self._http = httpx2.Client(
            base_url=self.base_url,
            timeout=_TIMEOUT,
            transport=transport,
            # A proxy for the internet must not stand between two processes of one machine.
            trust_env=url.host not in _LOOPBACK,
            headers={"Accept": "application/json"},
        )

    def clusters(self, *, as_of: Moment | None = None) -> answers.Clusters:
        """List clusters and the window that each can be asked for."""
        return self._get(answers.Clusters, "/v1/clusters", as_of=as_of)

    def books(self, *, as_of: Moment | None = None) -> answers.Books:
        """List books with their chain heads, and count the dead letters."""
        return self._get(answers.Books, "/v1/books", as_of=as_of)

    def balances(
        self,
        *,
        cluster: str | None = None,
        period: str | None = None,
        account: str | None = None,
        as_of: Moment | None = None,
    ) -> answers.Balances:
        """List balances; ``account`` keeps it and what is below it."""
        return self._get(
            answers.Balances,
            "/v1/balances",
            cluster=cluster,
            period=period,
            account=account,
            as_of=as_of,
        )

    def balance(
        self,
        account: str,
        *,
        cluster: str | None = None,
        period: str | None = None,
        as_of: Moment | None = None,
    ) -> answers.OneBalance:
        """Return one account's balance, of the newest period unless given.

        Raises:
            NotFound: When the account does not exist, or has no balance there and then.
        """
        path = f"/v1/balances/{quote(account)}"
        return self._get(answers.OneBalance, path, cluster=cluster, period=period, as_of=as_of)

    def allocations(self, cluster: str, *, as_of: Moment | None = None) -> answers.Cycle:
        """Return the newest cycle of a cluster.

        Raises:
            NotFound: When the cluster does not exist, or the policy has not run.
        """
        return self._get(answers.Cycle, "/v1/allocations/current", cluster=cluster, as_of=as_of)

    def directives(
        self,
        cluster: str,
        *,
        after: int | None = None,
        stale_after_s: int | None = None,
        as_of: Moment | None = None,
    ) -> answers.Directives:
        """Return what the newest cycle of a cluster orders; after a cursor, only what is newer.

        Raises:
            NotFound: When the cluster does not exist.
        """
        return self._get(
            answers.Directives,
            "/v1/directives/current",
            cluster=cluster,
            after=after,
            stale_after_s=stale_after_s,
            as_of=as_of,
        )

    def usage(
        self,
        by: str = "account",
        *,
        cluster: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        as_of: Moment | None = None,
    ) -> answers.Usage:
        """Return GPU-time used, keyed by account, month, day, user, class, cluster, host or model."""
        return self._get(
            answers.Usage,
            "/v1/usage",
            by=by,
            cluster=cluster,
            **{"from": from_},
            to=to,
            as_of=as_of,
        )

    def layers(
        self,
        by: str = "cluster",
        *,
        cluster: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        as_of: Moment | None = None,
    ) -> answers.Layers:
        """Return the four layers, keyed by day, hour, cluster or total; ``to`` is exclusive."""
        return self._get(
            answers.Layers,
            "/v1/layers",
            by=by,
            cluster=cluster,
            **{"from": from_},
            to=to,
            as_of=as_of,
        )

    def budget_vs_actual(
        self, *, cluster: str | None = None, period: str | None = None, as_of: Moment | None = None
    ) -> answers.BudgetVersusActual:
        """Return budget against actual, of the newest period unless given."""
        return self._get(
            answers.BudgetVersusActual,
            "/v1/budget-vs-actual",
            cluster=cluster,
            period=period,
            as_of=as_of,
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
        response = self._send(path, given)
        if response.is_success:
            try:
                return msgspec.json.decode(response.content, type=kind)
            except msgspec.DecodeError as error:
                raise Unavailable(
                    f"what answers at {self.base_url}{path} is not the ledger API of this version: {error}",
                    hint="check GPULEDGER_API_URL, and upgrade the older side",
                ) from error
        raise _error(self.base_url, path, response)

    def _send(self, path: str, parameters: dict[str, str]) -> httpx2.Response:
        try:
            for attempt in retry_context(
                on=httpx2.NetworkError, attempts=_ATTEMPTS, timeout=_PATIENCE_S, wait_max=0.5, wait_jitter=0.1
            ):
                with attempt:
                    return self._http.get(path, params=parameters)
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
        case 404:
            return NotFound(problem.detail, hint=problem.hint)
        case 409:
            return Conflict(problem.detail, hint=problem.hint)
        case 503:
            return Unavailable(problem.detail, hint=problem.hint)
        case status if status >= 500:  # noqa: PLR2004 - the server's own faults
            return Corrupt(problem.detail, hint=problem.hint)
        case _:
            return Refused(problem.detail, hint=problem.hint)
