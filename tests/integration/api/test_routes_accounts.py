"""The tree of accounts over HTTP, with what was set and from when on."""

import datetime as dt
from collections.abc import Callable

from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger, at, told

from gpuledger.api.examples import EXAMPLES
from gpuledger.events.budget import OverdraftSet, ShareSet
from gpuledger.identity.roles import Role

Shown = Callable[[Role], dict[str, str]]


def test_accounts_are_told_with_shares_by_date_and_cut_to_the_subtree(
    own_ledger: Ledger, guarded: TestClient, shown: Shown
) -> None:
    account = "org/vision/video"
    own_ledger.append(
        told(at("2026-06-01T00:00:00Z"), ShareSet(account=account, share=3, reason="r", by="b")),
        told(at("2027-01-01T00:00:00Z"), ShareSet(account=account, share=5, reason="r", by="b")),
        told(at("2026-06-01T00:00:00Z"), OverdraftSet(account=account, overdraft="hard", reason="r", by="b")),
    )
    every = guarded.get("/v1/accounts", headers=shown(Role.ADMIN)).json()["accounts"]
    assert [row["account"] for row in every] == [
        "org", "org/speech", "org/vision", "org/vision/faces", "org/vision/video"
    ]  # fmt: skip
    assert EXAMPLES["listAccounts"]["accounts"][0].keys() == every[0].keys()
    video = every[-1]
    assert (video["parent"], video["is_leaf"], video["share"], video["overdraft"]) == (
        "org/vision",
        True,
        3,
        "hard",
    )
    assert [(one["from"], one["share"]) for one in video["shares"]] == [
        ("2026-06-01T00:00:00Z", 3), ("2027-01-01T00:00:00Z", 5)
    ]  # fmt: skip
    assert [row["is_leaf"] for row in every[:3]] == [False, True, False]
    own = guarded.get("/v1/accounts", headers=shown(Role.MANAGER)).json()["accounts"]
    assert [row["account"] for row in own] == ["org/vision", "org/vision/faces", "org/vision/video"]
    below = guarded.get(f"/v1/accounts?account={account}", headers=shown(Role.MANAGER)).json()["accounts"]
    assert [row["account"] for row in below] == [account]


def test_what_was_not_recorded_yet_is_not_told(own_ledger: Ledger, guarded: TestClient, shown: Shown) -> None:
    own_ledger.clock.at += dt.timedelta(seconds=60)
    before = guarded.get("/v1/accounts", headers=shown(Role.ADMIN)).json()
    own_ledger.clock.at += dt.timedelta(seconds=60)
    own_ledger.append(told(0, ShareSet(account="org/speech", share=9, reason="r", by="b")))
    path = f"/v1/accounts?as_of={before['as_of']}"
    assert guarded.get(path, headers=shown(Role.ADMIN)).json()["accounts"] == before["accounts"]
    now = guarded.get("/v1/accounts?limit=1&after=1", headers=shown(Role.ADMIN)).json()
    assert (now["accounts"][0]["share"], now["next"]) == (9, 2)
