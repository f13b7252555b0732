"""``user erase``: shown first, done once, and afterwards nobody of that name is known."""

import datetime as dt
import json

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine, writing
from gpuledger.events.envelope import decode
from gpuledger.ingest.dead_letters import DeadLetter, put, resolve, waiting
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.ledger import outbox

CLUSTER = "alpha"
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)


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
        "name": "Ada Lovelace", "token": token(booked), "rows": 1, "texts": 1, "dead_letters": 0, "waiting": [],
        "messages": 0, "unpublished": 0, "erased": False,
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


GRANT = (
    "budget",
    "grant",
    "org",
    "5",
    "--cluster",
    CLUSTER,
    "--period",
    "2026-01",
    "--reason",
    "Grace asked",
    "--key",
    "k",
)


def test_one_who_granted_is_erased_and_the_grant_stands(booked: Ledger) -> None:
    first = booked.done(*GRANT, LOGNAME="ada")
    heads, digest = booked.heads(), booked.checked_digest()

    ran = booked.done("user", "erase", "ada", "--yes")

    assert (ran["rows"], ran["texts"], ran["erased"]) == (1, 1, True)
    assert (booked.heads(), booked.checked_digest()) == (heads, digest)
    assert (
        booked.done("balance", "org", "--cluster", CLUSTER, "--period", "2026-01")["granted_gpu_hours"]
        == "5.000"
    )
    assert booked.done(*GRANT, LOGNAME="ada") == {**first, "repeated": True}
    assert booked.heads() == heads


def test_what_quotes_the_name_is_shown_with_what_becomes_of_it(booked: Ledger) -> None:
    def letter(number: int) -> DeadLetter:
        raw = f"{number},Ada Lovelace".encode()
        return DeadLetter(
            "import/x/alpha", 0, number, f"x.csv:{number}", "bad", "no date in 'Ada Lovelace'", "", raw
        )

    engine = make_engine(booked.url)
    with writing(engine) as writer:
        put(writer, [letter(number) for number in range(1, 24)], NOON)
        first, second, *_ = (stored.id for stored in waiting(writer))
        resolve(writer, [first], NOON)
        queued = outbox.waiting(writer, 2)
        outbox.mark_published(writer, [message.id for message in queued], NOON)
    engine.dispose()

    ran = booked("user", "erase", "Ada Lovelace", "--yes", "--json")

    assert ran.status == 0
    assert [ran.json[key] for key in ("dead_letters", "messages", "unpublished")] == [23, 2, 21]
    assert ran.json["waiting"][0] == {"id": second, "place": "x.csv:2"}
    assert ran.err.splitlines()[2:5] == [
        "- bytes of 1 dead letters that were read after all or discarded",
        "- bytes of 2 published messages",
        f"  kept: dead letter {second}, x.csv:2, which waits",
    ]
    assert ran.err.splitlines()[-3:] == [
        "  ... and 2 more; gpuledger user erase --dry-run --json lists all",
        "  gpuledger dlq retry reads them when it can, dlq discard gives them up; erase again afterwards",
        "  kept: 21 messages that wait; gpuledger cycle publishes them, erase again afterwards",
    ]
    assert booked.rows("SELECT position, raw FROM ledger.dead_letters WHERE raw = ''") == [(1, b"")]
    letters = booked.done("dlq", "list")["dead_letters"]
    assert [item["place"] for item in letters] == [f"x.csv:{number}" for number in range(2, 24)]


def test_an_unknown_name_is_met_with_near_ones(booked: Ledger) -> None:
    ran = booked("user", "erase", "Ada Lovelance", "--yes")
    assert ran.status == 4
    assert "did you mean Ada Lovelace?" in ran.err
