"""A ledger of two programs on two clusters, a token for each role, and a request for each operation of the API.

Accounts, clusters and workloads come in an own and a foreign kind, so that every operation can be asked for both.
"""

import datetime as dt
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa
from fastapi.testclient import TestClient
from httpx import Response
from tests.integration.ledger.books import Ledger, granted, registered, started, submitted, told

from gpuledger.database.engine import writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.envelope import encode
from gpuledger.events.proposal import NewGrant, Proposed
from gpuledger.identity import store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role
from gpuledger.identity.store import Order

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

GPU_HOUR = 3_600_000
PERIOD = "2026-12"

OWN = {
    "account": "org/vision/video", "cluster": "alpha", "workload": "waits-video", "to": "org/vision/faces",
    "proposal": "p-000000000001",
}  # fmt: skip
FOREIGN = {
    "account": "org/speech", "cluster": "beta", "workload": "waits-speech", "to": "org/vision/faces",
    "proposal": "p-000000000002",
}  # fmt: skip

SCOPES: dict[Role, Scope] = {
    Role.ADMIN: Scope(),
    Role.MANAGER: Scope("org/vision"),
    Role.LEAD: Scope("org/vision", ("alpha",)),
    Role.RESEARCHER: Scope("org/vision/video"),
    Role.SCHEDULER: Scope(None, ("alpha",)),
    Role.AUDITOR: Scope(),
    Role.VIEWER: Scope("org/vision"),
}


@dataclass(frozen=True)
class Asked:
    """One operation as it is asked.

    Args:
        path: With the names of ``OWN`` and ``FOREIGN`` in braces.
        body: The same; None for a GET.
        bound: What of it a scope can be too small for.
    """

    method: str
    path: str
    bound: tuple[str, ...] = ()
    body: dict[str, Any] | None = None


_ORDER = {
    "account": "{account}",
    "cluster": "{cluster}",
    "period": PERIOD,
    "gpu_ms": GPU_HOUR,
    "reason": "test",
}

_SAID = {"reason": "test"}

OPERATIONS: dict[str, Asked] = {
    "listBalances": Asked("GET", "/v1/balances?account={account}&cluster={cluster}", ("account", "cluster")),
    "getBalance": Asked("GET", "/v1/balances/{account}?cluster={cluster}", ("account", "cluster")),
    "getBalanceTree": Asked(
        "GET", "/v1/balance-trees/{account}?cluster={cluster}", ("account", "cluster")
    ),
    "getQueue": Asked("GET", "/v1/queue?cluster={cluster}&account={account}", ("account", "cluster")),
    "listOwed": Asked("GET", "/v1/owed?cluster={cluster}&account={account}", ("account", "cluster")),
    "getCurrentAllocations": Asked("GET", "/v1/allocations/current?cluster={cluster}", ("cluster",)),
    "getCurrentDirectives": Asked("GET", "/v1/directives/current?cluster={cluster}", ("cluster",)),
    "getWorkload": Asked("GET", "/v1/workloads/{workload}?cluster={cluster}", ("workload", "cluster")),
    "getUsage": Asked("GET", "/v1/usage?account={account}&cluster={cluster}", ("account", "cluster")),
    "listLayers": Asked("GET", "/v1/layers?cluster={cluster}", ("cluster",)),
    "listWaits": Asked("GET", "/v1/waits?account={account}&cluster={cluster}", ("account", "cluster")),
    "listWaste": Asked("GET", "/v1/waste?account={account}&cluster={cluster}", ("account", "cluster")),
    "getBudgetVersusActual": Asked("GET", "/v1/budget-vs-actual?cluster={cluster}", ("cluster",)),
    "listMovements": Asked("GET", "/v1/movements/{account}?cluster={cluster}", ("account", "cluster")),
    "listPeriods": Asked("GET", "/v1/periods?cluster={cluster}", ("cluster",)),
    "listClusters": Asked("GET", "/v1/clusters"),
    "listHosts": Asked("GET", "/v1/hosts?cluster={cluster}", ("cluster",)),
    "listDrains": Asked("GET", "/v1/drains?cluster={cluster}", ("cluster",)),
    "listIncidents": Asked("GET", "/v1/incidents?cluster={cluster}", ("cluster",)),
    "listAccounts": Asked("GET", "/v1/accounts?account={account}", ("account",)),
    "listCloses": Asked("GET", "/v1/closes?cluster={cluster}", ("cluster",)),
    "getClose": Asked("GET", "/v1/closes/{cluster}/2026-11", ("cluster",)),
    "listBooks": Asked("GET", "/v1/books"),
    "exportEntries": Asked(
        "GET", "/v1/exports/entries?cluster={cluster}&account={account}", ("account", "cluster")
    ),
    "exportUsage": Asked("GET", "/v1/exports/usage?cluster={cluster}&account={account}", ("account", "cluster")),
    "exportStatement": Asked("GET", "/v1/exports/statements/{cluster}/2026-11", ("cluster",)),
    "getCaller": Asked("GET", "/v1/me"),
    "listTokens": Asked("GET", "/v1/tokens"),
    "getMetrics": Asked("GET", "/metrics"),
    "postEvents": Asked("POST", "/v1/events", ("cluster",), {"event": "{cluster}"}),
    "admit": Asked(
        "POST", "/v1/admissions", ("cluster",), {"cluster": "{cluster}", "workload": "{workload}"}
    ),
    "grant": Asked("POST", "/v1/budget/grants?dry_run=true", ("account", "cluster"), _ORDER),
    "transfer": Asked(
        "POST", "/v1/budget/transfers?dry_run=true", ("account", "cluster"), {**_ORDER, "to": "{to}"}
    ),
    "divide": Asked("POST", "/v1/fairshare", (), {"supply_milli": 1000, "accounts": [{"account": "{account}"}]}),
    "listProposals": Asked("GET", "/v1/proposals?account={account}&cluster={cluster}", ("account", "cluster")),
    "getProposal": Asked("GET", "/v1/proposals/{proposal}", ("proposal",)),
    "propose": Asked(
        "POST", "/v1/proposals?dry_run=true", ("account", "cluster"),
        {"cluster": "{cluster}", "reason": "test",
         "grants": [{"account": "{account}", "period": PERIOD, "gpu_ms": GPU_HOUR}]},
    ),
    "comment": Asked("POST", "/v1/proposals/{proposal}/comments", ("proposal",), _SAID),
    "approve": Asked("POST", "/v1/proposals/{proposal}/approval", ("proposal",), _SAID),
    "reject": Asked("POST", "/v1/proposals/{proposal}/rejection", ("proposal",), _SAID),
    "withdraw": Asked("POST", "/v1/proposals/{proposal}/withdrawal", ("proposal",), _SAID),
}  # fmt: skip
"""Operation -> how it is asked. One that is not here fails the matrix."""


def small_ledger(ledger: Ledger) -> None:
    """Book accounts, grants, runs and waiting work on both clusters."""
    accounts = ("org", "org/vision", OWN["account"], OWN["to"], FOREIGN["account"])
    ledger.append(*(told(0, AccountCreated(account=name)) for name in accounts))
    for cluster in (OWN["cluster"], FOREIGN["cluster"]):
        ledger.append(told(0, registered("h1", 8, cluster=cluster)))
        for account in (OWN["account"], OWN["to"], FOREIGN["account"]):
            order = granted(account, PERIOD, 100 * GPU_HOUR)
            ledger.append(told(0, msgspec.structs.replace(order, cluster=cluster)))
            kind = account.rpartition("/")[2]
            asked = submitted(f"waits-{kind}", account=account, cluster=cluster, minimum_runtime_s=3600)
            ran = submitted(f"ran-{kind}", account=account, cluster=cluster)
            runs = started(f"ran-{kind}", cluster=cluster)
            ledger.append(told(NOON_S - 7200, asked), told(NOON_S - 7200, ran), told(NOON_S - 7200, runs))
    for names in (OWN, FOREIGN):
        grant = NewGrant(account=names["account"], period=PERIOD, gpu_ms=GPU_HOUR)
        fact = Proposed(
            proposal=names["proposal"], cluster=names["cluster"], grants=[grant], by="somebody", reason="test"
        )
        ledger.append(told(NOON_S - 7200, fact))


NOON_S = int(dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC).timestamp())


def booked_ledger(postgres: "EmbeddedPostgres", template: str, name: str) -> Iterator[Ledger]:
    """Yield the small ledger in a database of a name of its own, for all tests of a module."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    ledger = Ledger(postgres.url(name))
    small_ledger(ledger)
    yield ledger
    ledger.engine.dispose()


def tokens_of(ledger: Ledger) -> dict[Role, str]:
    """Make a token for each role."""
    made = {}
    with writing(ledger.engine) as writer:
        for role, scope in SCOPES.items():
            order = Order(f"the {role}", role, scope, dt.timedelta(days=1), "test")
            made[role], _ = store.create(writer, order, ledger.clock.now())
    return made


def ask(api: TestClient, operation: str, names: dict[str, str], token: str | None) -> Response:
    """Ask for an operation, with or without a token."""
    asked = OPERATIONS[operation]
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    path = asked.path.format(**names)
    if asked.body is None:
        return api.request(asked.method, path, headers=headers)
    if operation == "postEvents":
        fact = registered("h2", 8, cluster=names["cluster"])
        content = encode(id=f"h2 of {names['cluster']}", source="test", at_s=0, data=fact)
        headers["Content-Type"] = "application/cloudevents+json"
        return api.request(asked.method, path, headers=headers, content=content)
    key = "k1" if "dry_run" in path else f"{operation} {token}"
    headers["Idempotency-Key"] = hashlib.sha256(key.encode()).hexdigest()
    return api.request(asked.method, path, headers=headers, json=_filled(asked.body, names))


def _filled(value: Any, names: dict[str, str]) -> Any:  # noqa: ANN401 - what JSON is made of
    """Return a body with the names put in."""
    match value:
        case str():
            return value.format(**names)
        case dict():
            return {key: _filled(one, names) for key, one in value.items()}
        case list():
            return [_filled(one, names) for one in value]
        case _:
            return value
