"""Who the API takes the caller for, and who else may ask."""

import datetime as dt
from collections.abc import Callable

from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger

from gpuledger.api.examples import TOKENS
from gpuledger.database.engine import writing
from gpuledger.identity import store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role
from gpuledger.identity.store import Order


def test_a_token_is_told_what_it_is(
    guarded: TestClient, shown: Callable[[Role], dict[str, str]], tokens: dict[Role, str]
) -> None:
    told = guarded.get("/v1/me", headers=shown(Role.LEAD)).json()
    assert told == {
        "name": "the lead", "role": "lead", "subtree": "org/vision", "clusters": ["alpha"],
        "rights": [
            "change-budgets", "propose", "read-accounts", "read-clusters", "read-proposals", "read-work",
        ],
        "token": tokens[Role.LEAD].split("_")[1],
    }  # fmt: skip


def test_without_one_an_open_api_says_whom_it_serves(api: TestClient) -> None:
    told = api.get("/v1/me").json()
    assert (told["name"], told["role"], told["token"]) == ("anyone", "auditor", None)


def test_an_admin_sees_every_token_and_no_secret(
    guarded: TestClient, shown: Callable[[Role], dict[str, str]], tokens: dict[Role, str]
) -> None:
    told = guarded.get("/v1/tokens", headers=shown(Role.ADMIN)).json()
    rows = {row["role"]: row for row in told["tokens"]}
    assert rows.keys() == {role.value for role in tokens}
    assert rows["lead"]["id"] == tokens[Role.LEAD].split("_")[1]
    assert told.keys() == TOKENS.keys()
    assert rows["lead"].keys() == TOKENS["tokens"][0].keys()
    assert rows["lead"]["good"]
    assert (rows["lead"]["subtree"], rows["lead"]["clusters"]) == ("org/vision", ["alpha"])
    assert not any(text.split("_", 2)[2] in str(told) for text in tokens.values())


def test_who_reaches_a_part_sees_those_who_reach_no_further(own_ledger: Ledger, guarded: TestClient) -> None:
    with writing(own_ledger.engine) as writer:
        for name, role, scope in (
            ("a", Role.ADMIN, Scope("org/vision", ("alpha",))),
            ("b", Role.LEAD, Scope("org/vision/video", ("alpha",))),
            ("c", Role.LEAD, Scope("org/vision/video")),
            ("d", Role.LEAD, Scope("org/speech", ("alpha",))),
        ):
            text, _ = store.create(
                writer, Order(name, role, scope, dt.timedelta(days=1), "test"), own_ledger.clock.now()
            )
            if name == "a":
                headers = {"Authorization": f"Bearer {text}"}
    told = guarded.get("/v1/tokens", headers=headers).json()
    assert {row["name"] for row in told["tokens"]} == {"a", "b"}
