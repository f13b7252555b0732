"""The commands of a login node against the real API: what they print is what the ledger says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient
from tests.integration.ledger.books import Ledger

from gpuledger.client import LedgerClient
from gpuledger.database.engine import reading
from gpuledger.identity.roles import Role
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.identity import names_of
from gpuledger.login import asking, gbalance, gjob, gshare
from gpuledger.login.gathering import write_files
from gpuledger.policy.service import issue_cycle

Ask = Callable[[str], Any]


@pytest.fixture(autouse=True)
def _cycle(own_ledger: Ledger) -> None:
    issue_cycle(
        own_ledger.engine,
        "alpha",
        at_s=seconds(own_ledger.clock.now()),
        clock=own_ledger.clock,
        calendar=Calendar(),
    )


@pytest.fixture(autouse=True)
def _node(guarded: TestClient, tokens: dict[Role, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A login node whose commands ask this API."""

    def relay(request: httpx2.Request) -> httpx2.Response:
        answer = guarded.get(request.url.raw_path.decode(), headers=dict(request.headers))
        return httpx2.Response(answer.status_code, content=answer.content)

    def opened() -> LedgerClient:
        transport = httpx2.MockTransport(relay)
        return LedgerClient("http://127.0.0.1:8080", tokens[Role.AUDITOR], transport=transport)

    monkeypatch.setattr(asking, "open_client", opened)


@pytest.fixture
def ask(guarded: TestClient, shown: Callable[[Role], dict[str, str]]) -> Callable[[str], Any]:
    """The answer to a question, asked directly."""
    return lambda path: guarded.get(path, headers=shown(Role.AUDITOR)).json()


def _document(capsys: pytest.CaptureFixture[str]) -> Any:  # noqa: ANN401 - any JSON document
    found: Any = json.loads(capsys.readouterr().out)
    return found


def test_shares_are_those_of_the_newest_cycle(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    assert gshare.main(["-M", "alpha", "--json"]) == 0
    document = _document(capsys)
    cycle = ask("/v1/allocations/current?cluster=alpha")
    assert document["cycle"] == cycle["cycle"]
    told = {row["account"]: row for row in document["shares"]}
    for each in cycle["allocations"]:
        row = told[each["account"]]
        assert (row["used_gpu_ms"], row["ratio"]) == (each["used_gpu_ms"], each["ratio"])
    leaves = sorted(row["fair_share"] for row in told.values() if row["fair_share"])
    assert leaves[-1] == "1.000000"


def test_people_and_fields_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert gshare.main(["-M", "alpha", "-aP", "-o", "Account,User,RawShares,NormShares"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "Account|User|RawShares|NormShares"
    assert rows
    assert all(row.count("|") == 3 for row in rows)


def test_balances_are_the_ledgers(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    assert gbalance.main(["-M", "alpha", "--json"]) == 0
    told = {row["account"]: row["available_gpu_ms"] for row in _document(capsys)["balances"]}
    for account, available in told.items():
        assert ask(f"/v1/balances/{account}?cluster=alpha")["available_gpu_ms"] == available
    assert told


def test_a_story_is_the_same_everywhere(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = ask("/v1/queue?cluster=alpha")["rows"]
    workload = waiting[0]["workload"]
    assert gjob.main(["-M", "alpha", workload]) == 0
    lines = ask(f"/v1/workloads/{workload}?cluster=alpha")["lines"]
    assert capsys.readouterr().out.splitlines() == lines


def test_files_for_login_and_portal(ask: Ask, own_ledger: Ledger, tmp_path: Path) -> None:
    with asking.open_client() as client, reading(own_ledger.engine) as reader:
        login, *portals = write_files(
            client,
            tmp_path,
            lambda tokens: names_of(reader, tokens),
            days=3660,
            members=None,
            now=own_ledger.clock.now(),
        )
    document = json.loads(login.read_text())
    assert (
        {name for name in document["people"] if not name.startswith("u-")} == set(document["people"]) != set()
    )
    for account, rows in document["accounts"].items():
        for row in rows:
            path = f"/v1/balances/{account}?cluster={row['cluster']}&period={row['period']}"
            assert ask(path)["available_gpu_ms"] == row["available_gpu_ms"]
    assert portals
