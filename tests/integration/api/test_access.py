"""Every operation of the document, asked by every role, for what is theirs and what is not."""

import datetime as dt
import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.testclient import TestClient
from tests.integration.api.matrix import (
    FOREIGN,
    GPU_HOUR,
    OPERATIONS,
    OWN,
    PERIOD,
    SCOPES,
    ask,
    booked_ledger,
    tokens_of,
)  # fmt: skip
from tests.integration.ledger.books import Ledger

from gpuledger.api.access import Access
from gpuledger.api.app import create_app
from gpuledger.api.context import Context
from gpuledger.api.refusals import LOG
from gpuledger.database.engine import writing
from gpuledger.identity import store
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Role
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Forbidden, Unavailable, Unidentified

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

EVERYBODY = set(Role)
WORKERS = EVERYBODY - {Role.VIEWER}
DISCUSSES = {Role.ADMIN, Role.MANAGER, Role.LEAD, Role.RESEARCHER}
MAY = {
    "listBalances": EVERYBODY,
    "getBalance": EVERYBODY,
    "getBalanceTree": EVERYBODY,
    "listOwed": EVERYBODY,
    "getUsage": EVERYBODY,
    "getBudgetVersusActual": EVERYBODY,
    "listMovements": EVERYBODY,
    "listPeriods": EVERYBODY,
    "listLayers": EVERYBODY,
    "listWaits": EVERYBODY,
    "listWaste": EVERYBODY,
    "listClusters": EVERYBODY,
    "listHosts": EVERYBODY,
    "listAccounts": EVERYBODY,
    "listCloses": EVERYBODY,
    "getClose": EVERYBODY,
    "exportUsage": EVERYBODY,
    "exportStatement": EVERYBODY,
    "exportEntries": WORKERS,
    "listDrains": WORKERS,
    "listIncidents": WORKERS,
    "getCaller": EVERYBODY,
    "listTokens": {Role.ADMIN},
    "divide": EVERYBODY,
    "getCurrentAllocations": WORKERS,
    "getQueue": WORKERS,
    "getWorkload": WORKERS,
    "getCurrentDirectives": {Role.ADMIN, Role.SCHEDULER, Role.AUDITOR},
    "listBooks": {Role.ADMIN, Role.AUDITOR},
    "getMetrics": {Role.ADMIN, Role.AUDITOR},
    "postEvents": {Role.ADMIN, Role.SCHEDULER},
    "admit": {Role.ADMIN, Role.SCHEDULER},
    "grant": {Role.ADMIN, Role.MANAGER, Role.LEAD},
    "transfer": {Role.ADMIN, Role.MANAGER, Role.LEAD},
    "listProposals": DISCUSSES | {Role.AUDITOR},
    "getProposal": DISCUSSES | {Role.AUDITOR},
    "propose": DISCUSSES,
    "comment": DISCUSSES,
    "withdraw": DISCUSSES,
    "approve": {Role.ADMIN, Role.MANAGER, Role.LEAD},
    "reject": {Role.ADMIN, Role.MANAGER, Role.LEAD},
}
"""Operation -> the roles that may ask for it, as docs/api.md says."""

MISSING = ("getCurrentAllocations", "getClose", "exportStatement")
"""Operations that ask for what the small ledger has not got: no cycle ran, and no period was closed."""


@pytest.fixture(scope="module")
def booked(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[Ledger]:
    yield from booked_ledger(postgres, template_database, "gpuledger_access")


@pytest.fixture(scope="module")
def tokens(booked: Ledger) -> dict[Role, str]:
    return tokens_of(booked)


@pytest.fixture(scope="module")
def api(booked: Ledger) -> Iterator[TestClient]:
    app = create_app(booked.engine, booked.clock, mode="token")
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def reaches(role: Role, operation: str, names: dict[str, str]) -> bool:
    """Say whether a scope holds all that an operation is asked about; worked out from the parts of the names."""
    scope = SCOPES[role]
    bound = OPERATIONS[operation].bound
    for what in ("account", "cluster") if bound == ("proposal",) else bound:
        if what == "cluster" and scope.clusters and names["cluster"] not in scope.clusters:
            return False
        if what in ("account", "workload") and scope.subtree is not None:
            owner = names["account"].split("/")
            own = scope.subtree.split("/")
            if owner[: len(own)] != own:
                return False
    return True


def test_every_operation_names_a_right_and_is_in_the_matrix(api: TestClient) -> None:
    paths = api.get("/openapi.json").json()["paths"]
    named = {
        operation["operationId"]: operation.get("x-right")
        for methods in paths.values()
        for operation in methods.values()
    }
    free = {name for name, right in named.items() if right is None}
    assert free == {"getHealth", "getReadiness"}
    assert named.keys() - free == OPERATIONS.keys() == MAY.keys()


@pytest.mark.parametrize("names", [OWN, FOREIGN], ids=["own", "foreign"])
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_a_role_gets_what_it_may_and_what_it_reaches(
    api: TestClient, tokens: dict[Role, str], operation: str, role: Role, names: dict[str, str]
) -> None:
    answer = ask(api, operation, names, tokens[role])
    if role not in MAY[operation]:
        assert answer.status_code == 403
        assert f" {role}, whom " in answer.json()["detail"]
    elif not reaches(role, operation, names):
        hidden = "proposal" in OPERATIONS[operation].bound or (
            operation == "getWorkload" and reaches(role, "getCurrentAllocations", names)
        )
        assert answer.status_code == (404 if hidden else 403), answer.text
    elif operation in (
        "approve",
        "reject",
        "withdraw",
    ):  # whoever comes first decides; nobody here proposed it
        assert answer.status_code in ((403, 409) if operation == "withdraw" else (200, 409)), answer.text
    else:
        assert answer.status_code in (
            200,
            404 if operation in MISSING else 200,
        ), answer.text


@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("shown", [None, "gpl_000000000000_" + "A" * 43, "nonsense"])
def test_nobody_is_let_in_without_a_good_token(api: TestClient, operation: str, shown: str | None) -> None:
    answer = ask(api, operation, OWN, shown)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert OWN["account"] not in answer.json()["detail"] + answer.json()["hint"]


def test_another_kind_of_proof_is_none(api: TestClient, tokens: dict[Role, str]) -> None:
    for said in (f"Basic {tokens[Role.ADMIN]}", tokens[Role.ADMIN], "Bearer", "Bearer  "):
        assert api.get("/v1/me", headers={"Authorization": said}).status_code == 401
    assert api.get(f"/v1/me?token={tokens[Role.ADMIN]}").status_code == 401


def test_a_strangers_mistakes_are_not_told_before_who_asks_is_known(api: TestClient) -> None:
    for path in (
        "/v1/usage?by=nothing",
        "/v1/usage?nothing=1",
        "/v1/balances/nobody",
        "/v1/layers?cluster=nowhere",
    ):
        assert api.get(path).status_code == 401
    assert api.post("/v1/budget/grants", json={"nothing": 1}).status_code == 401


def test_health_and_help_are_for_everybody(api: TestClient) -> None:
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/problems/forbidden"):
        assert api.get(path).status_code == 200


def test_lists_are_cut_to_what_is_reached(api: TestClient, tokens: dict[Role, str]) -> None:
    def listed(role: Role, path: str) -> dict[str, object]:
        answer = api.get(path, headers={"Authorization": f"Bearer {tokens[role]}"})
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found

    def accounts(role: Role, path: str, rows: str, key: str = "account") -> set[str]:
        found = listed(role, path)[rows]
        assert isinstance(found, list)
        return {row[key] for row in found}

    every = {"org/vision/video", "org/vision/faces", "org/speech"}
    for path, rows, key in (("/v1/balances", "balances", "account"), ("/v1/usage", "rows", "key")):
        assert accounts(Role.ADMIN, path, rows, key) == every
        assert accounts(Role.MANAGER, path, rows, key) == every - {"org/speech"}
        assert accounts(Role.RESEARCHER, path, rows, key) == {"org/vision/video"}
    assert accounts(Role.LEAD, "/v1/balances", "balances", "cluster") == {"alpha"}
    assert accounts(Role.LEAD, "/v1/clusters", "clusters", "cluster") == {"alpha"}
    assert accounts(Role.ADMIN, "/v1/clusters", "clusters", "cluster") == {"alpha", "beta"}
    total = listed(Role.RESEARCHER, "/v1/usage?by=cluster")["total_gpu_ms"]
    assert total == listed(Role.ADMIN, "/v1/usage?account=org/vision/video")["total_gpu_ms"]


def test_people_are_not_for_viewers(api: TestClient, tokens: dict[Role, str]) -> None:
    for role, status in ((Role.VIEWER, 403), (Role.RESEARCHER, 200)):
        headers = {"Authorization": f"Bearer {tokens[role]}"}
        assert api.get("/v1/usage?by=user", headers=headers).status_code == status


@pytest.mark.parametrize(
    "path",
    [
        "/v1/balances/org/vision/video/../../speech", "/v1/balances/ORG/speech", "/v1/balances/org/speech/",
        "/v1/balances/org/speech%00", "/v1/balances/org%2Fspeech", "/v1/balances?account=org/speech",
        "/v1/balances?account=org", "/v1/usage?account=", "/v1/balances/org/v%C4%B1sion",
        "/v1/usage?account=org/vision%25",
        "/v1/workloads/waits-speech", "/v1/workloads/../balances/org/speech",
        "/v1/usage?account=org/vision&account=org/speech",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_a_subtree(api: TestClient, tokens: dict[Role, str], path: str) -> None:
    answer = api.get(path, headers={"Authorization": f"Bearer {tokens[Role.MANAGER]}"})
    assert answer.status_code in (403, 404, 422), answer.text
    if answer.status_code == 404:  # what is nearest may be somebody else's
        assert "speech" not in answer.json()["hint"]


def test_a_hint_names_nobody_else(api: TestClient, tokens: dict[Role, str]) -> None:
    near = "/v1/balances/org/vision/vide?cluster=alpha"
    for role, told in ((Role.ADMIN, True), (Role.MANAGER, False)):
        answer = api.get(near, headers={"Authorization": f"Bearer {tokens[role]}"})
        assert answer.status_code == 404
        assert ("org/vision/video" in answer.json()["hint"]) is told


def test_a_refusal_is_logged_without_what_was_shown(
    api: TestClient, tokens: dict[Role, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=LOG.name):
        ask(api, "listBooks", OWN, tokens[Role.VIEWER])
        ask(api, "listBooks", OWN, "gpl_secret")
        ask(api, "getBalance", FOREIGN, tokens[Role.VIEWER])
    first, second, third = (json.loads(record.getMessage()) for record in caplog.records)
    assert (first["name"], first["role"], first["path"]) == ("the viewer", "viewer", "/v1/books")
    assert second["name"] is None
    assert "org/speech" in third["why"]
    assert "gpl_" not in caplog.text
    assert all(token not in caplog.text for token in tokens.values())


def test_a_token_ends_at_once(booked: Ledger, api: TestClient) -> None:
    headers = {}
    with writing(booked.engine) as writer:
        order = store.Order("gone", Role.AUDITOR, SCOPES[Role.AUDITOR], dt.timedelta(days=1), "test")
        text, token = store.create(writer, order, booked.clock.now())
    headers["Authorization"] = f"Bearer {text}"
    assert api.get("/v1/me", headers=headers).json()["name"] == "gone"
    with writing(booked.engine) as writer:
        assert store.get(writer, token.id).last_used_at == booked.clock.now()
        store.revoke(writer, token.id, by="test", now=booked.clock.now())
    assert api.get("/v1/me", headers=headers).status_code == 401


def test_an_open_api_reads_everything_and_changes_nothing(booked: Ledger, tokens: dict[Role, str]) -> None:
    with TestClient(create_app(booked.engine, booked.clock)) as open_api:
        for operation, asked in OPERATIONS.items():
            status = ask(open_api, operation, OWN, None).status_code
            changes = (
                asked.method == "POST" and operation != "divide"
            )  # which reads nothing and keeps nothing
            # Who holds which token is in no book, and for administrators alone.
            expected = {403} if changes or operation == "listTokens" else {200, 404}
            assert status in expected, operation
        assert ask(open_api, "grant", OWN, tokens[Role.MANAGER]).status_code == 200


def test_a_path_that_names_no_right_answers_nobody(booked: Ledger, tokens: dict[Role, str]) -> None:
    app, routes = FastAPI(), APIRouter()

    @routes.get("/new")
    def new() -> str:
        return "told"

    context = Context(booked.engine, booked.clock, Calendar())
    app.include_router(routes, dependencies=[Depends(Access(context, "token"))])
    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/new", headers={"Authorization": f"Bearer {tokens[Role.ADMIN]}"})
    assert answer.status_code == 500
    assert "told" not in answer.text


def test_a_manager_changes_what_lies_below_and_never_the_own_budget(
    api: TestClient, tokens: dict[Role, str]
) -> None:
    headers = {"Authorization": f"Bearer {tokens[Role.MANAGER]}", "Idempotency-Key": "own"}
    order = {
        "account": "org/vision",
        "cluster": "alpha",
        "period": PERIOD,
        "gpu_ms": GPU_HOUR,
        "reason": "more",
    }
    assert api.post("/v1/budget/grants", headers=headers, json=order).status_code == 403
    moved = {**order, "account": OWN["account"], "to": "org/speech"}
    assert api.post("/v1/budget/transfers", headers=headers, json=moved).status_code == 403
    moved = {**order, "account": "org/speech", "to": OWN["account"]}
    assert api.post("/v1/budget/transfers", headers=headers, json=moved).status_code == 403


class Elsewhere:
    """An identity provider that knows one lead, and is away on demand."""

    away = False

    def is_meant(self, text: str) -> bool:
        return "." in text

    def recognise(self, text: str) -> Caller:
        if self.away:
            raise Unavailable("the identity provider does not answer")
        match text:
            case "a.good.one":
                return Caller("lin", Role.LEAD, SCOPES[Role.LEAD])
            case "in.no.group":
                raise Forbidden("lin is in no group that means something here")
            case _:
                raise Unidentified("the identity token is not good")


def test_identity_tokens_open_the_api_beside_the_ledgers_own(booked: Ledger, tokens: dict[Role, str]) -> None:
    provider = Elsewhere()
    app = create_app(booked.engine, booked.clock, mode="token", provider=provider)
    with TestClient(app) as api:
        told = api.get("/v1/me", headers={"Authorization": "Bearer a.good.one"}).json()
        assert (told["name"], told["role"], told["subtree"], told["token"]) == (
            "lin",
            "lead",
            "org/vision",
            None,
        )
        assert ask(api, "getBalance", FOREIGN, "a.good.one").status_code == 403
        assert ask(api, "listBalances", OWN, "in.no.group").status_code == 403
        assert ask(api, "listBalances", OWN, "a.bad.one").status_code == 401
        assert ask(api, "listBalances", OWN, tokens[Role.VIEWER]).status_code == 200
        provider.away = True
        assert ask(api, "listBalances", OWN, "a.good.one").status_code == 503
