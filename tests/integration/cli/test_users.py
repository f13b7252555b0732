"""``user erase``: shown first, done once, and afterwards nobody of that name is known."""

import json

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import decode
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

CLUSTER = "alpha"


@pytest.fixture
def booked(ledger: Ledger) -> Ledger:
    """One run of Ada Lovelace, with a text kept aside."""

    def event(name: str, time: str, **data: object) -> bytes:
        envelope = {
            "specversion": "1.0", "id": f"w/{name}", "source": "test", "type": f"org.gpuledger.workload.{name}.v1",
            "time": time, "data": {"cluster": CLUSTER, "workload": "w", **data},
        }  # fmt: skip
        return json.dumps(envelope).encode()

    asked = {"account": "org", "user": "Ada Lovelace", "gpus_milli": 1000, "job_name": "a secret"}
    events = [
        event("submitted", "2026-01-01T00:00:00Z", **asked),
        event("started", "2026-01-01T00:00:00Z", run="1", attempt=1, gpus_milli=1000, hosts=[]),
        event("ended", "2026-01-01T01:00:00Z", run="1", reason="completed"),
    ]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take([decode(value) for value in events])
    engine.dispose()
    return ledger


def token(ledger: Ledger) -> str:
    ((found,),) = ledger.rows("SELECT DISTINCT user_token FROM ledger.segments")
    return str(found)


def test_what_would_be_erased_is_shown_and_nothing_is(booked: Ledger) -> None:
    ran = booked("user", "erase", "Ada Lovelace", "--dry-run", "--json")
    assert ran.status == 0
    assert ran.json == {
        "name": "Ada Lovelace", "token": token(booked), "rows": 1, "texts": 1, "dead_letters": 0, "erased": False,
    }  # fmt: skip
    assert ran.err.splitlines() == [
        f"- name and key behind {token(booked)}, which 1 journal rows carry and keep",
        "- 1 texts kept aside",
    ]
    assert booked("user", "erase", "Ada Lovelace", "--dry-run").out == "nothing erased\n"


def test_a_person_is_erased_once(booked: Ledger) -> None:
    heads, digest, known = booked.heads(), booked.checked_digest(), token(booked)

    ran = booked("user", "erase", "Ada Lovelace", "--yes")

    assert (ran.status, ran.out) == (0, "erased\n")
    assert (booked.heads(), booked.checked_digest()) == (heads, digest)
    assert booked.hours("user") == {known: "1.000"}
    again = booked("user", "erase", "Ada Lovelace", "--yes", "--json")
    assert (again.status, again.out) == (4, "")
    assert again.problem["error"] == "user 'Ada Lovelace' is not known here, or was erased"


def test_an_unknown_name_is_met_with_near_ones(booked: Ledger) -> None:
    ran = booked("user", "erase", "Ada Lovelance", "--yes")
    assert ran.status == 4
    assert "did you mean Ada Lovelace?" in ran.err
