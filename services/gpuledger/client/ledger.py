"""The client: one method per path, bounded in time and tries, errors by what the caller can do."""

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from gpuledger.client import answers, outcomes, stories
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


class Order(NamedTuple):
    """An order about GPU-time: whose, how much, where, when, and why.

    Args:
        gpu_ms: Milli-GPU x seconds, above zero.
        period: Budget period, such as ``2026-12``.
    """

    account: str
    gpu_ms: int
    cluster: str
    period: str
    reason: str


class LedgerClient:
    """Asks the ledger API; safe to share between threads.

    What changes something may be repeated without harm, so that it is sent again when its answer was lost: events are
    known by their identity, an admission stands until it is used, an order has a key.

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
        account: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        as_of: Moment | None = None,
    ) -> answers.Usage:
        """Return GPU-time used, of an account and what is below it where one is named.

        Keyed by account, month, day, user, class, cluster, host or model.
        """
        return self._get(
            answers.Usage,
            "/v1/usage",
            by=by,
            cluster=cluster,
            account=account,
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
        """Return the four layers, keyed by day, month, hour, cluster or total; ``to`` is exclusive."""
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

    def workload(
        self,
        workload: str,
        *,
        cluster: str | None = None,
        what_if: bool = False,
        as_of: Moment | None = None,
    ) -> stories.Workload:
        """Return a workload's story, and why it waits; ``what_if`` looks for what would let it start.

        Raises:
            NotFound: When the caller knows no such workload.
        """
        path = f"/v1/workloads/{quote(workload)}"
        wanted = "true" if what_if else None
        return self._get(stories.Workload, path, cluster=cluster, what_if=wanted, as_of=as_of)

    def movements(
        self,
        account: str,
        *,
        cluster: str | None = None,
        period: str | None = None,
        since: Moment | None = None,
        after: int | None = None,
        as_of: Moment | None = None,
    ) -> answers.Movements:
        """Return a page of what moved an account's budget; the next one takes ``next`` and the ``as_of`` of the first.

        Raises:
            NotFound: When the account or the cluster does not exist.
        """
        path = f"/v1/movements/{quote(account)}"
        return self._get(
            answers.Movements, path, cluster=cluster, period=period, since=since, after=after, as_of=as_of
        )

    def periods(self, *, cluster: str | None = None, as_of: Moment | None = None) -> answers.Periods:
        """List the budget periods that were opened or have movements."""
        return self._get(answers.Periods, "/v1/periods", cluster=cluster, as_of=as_of)

    def me(self) -> outcomes.WhoAmI:
        """Return who the API takes this client for."""
        return self._get(outcomes.WhoAmI, "/v1/me")

    def post_events(self, events: Iterable[bytes]) -> outcomes.TakenEvents:
        """Send CloudEvents in structured JSON, each as its bytes without line ends; at most 10,000.

        Raises:
            Refused: When one cannot be read; then none was taken.
            Forbidden: When one speaks of what the token does not reach.
        """
        body = b"\n".join(events)
        sent = self._send(
            "POST", "/v1/events", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        return self._read(outcomes.TakenEvents, "/v1/events", sent)

    def admit(self, cluster: str, workload: str) -> outcomes.Admitted:
        """Ask in which class the next attempt of a workload may start; sets aside what protects it.

        Raises:
            NotFound: When the workload was not submitted.
            Refused: When it runs already or is over.
        """
        return self._post(outcomes.Admitted, "/v1/admissions", {"cluster": cluster, "workload": workload})

    def grant(self, order: Order, *, key: str | None = None, dry_run: bool = False) -> outcomes.Ordered:
        """Give GPU-time to an account.

        Args:
            order: How much to whom, and why.
            key: What a repetition is known by; random unless given.
            dry_run: Only check it.

        Raises:
            Forbidden: When the account does not lie below the token's own.
            Refused: When the book as it stands cannot take it.
        """
        return self._post(outcomes.Ordered, "/v1/budget/grants", order._asdict(), key=key, dry_run=dry_run)

    def transfer(
        self, order: Order, to: str, *, key: str | None = None, dry_run: bool = False
    ) -> outcomes.Ordered:
        """Move GPU-time from the order's account to another; see ``grant``."""
        body = {**order._asdict(), "to": to}
        return self._post(outcomes.Ordered, "/v1/budget/transfers", body, key=key, dry_run=dry_run)

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
