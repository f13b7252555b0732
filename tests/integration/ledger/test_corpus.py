"""The frozen corpus of events, appended today, gives the state that it gave when it was frozen."""

import itertools
from pathlib import Path

import msgspec
import pytest
from tests.integration.ledger.books import HOUR, NOON, Ledger, ended, started, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events import upcasting
from gpuledger.events.envelope import Event, book_of, decode
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import verify
from gpuledger.ledger.policies import bring_up_to_date
from gpuledger.ledger.rebuild import check, state_digest

BERLIN = Calendar("Europe/Berlin")
"""The zone that the corpus sets."""

FIRST = """
account.created allocation.issued budget.granted budget.share_set budget.transferred host.registered host.retired
host.state_changed period.opened policy.applied policy.changed telemetry.sampled workload.class_changed workload.ended
workload.preempted workload.requeued workload.resized workload.resumed workload.started workload.submitted
workload.suspended
"""
SECOND = """
adjustment.posted budget.overdraft_set credit.granted credit.reversed decision.made incident.found ledger.settled
ledger.ticked period.closed period.closing period.reopened telemetry.sealed workload.checkpointed workload.ready
"""

FILES = {
    "2026-11-29": {"story.ndjson", *(f"{name}.v1.ndjson" for name in FIRST.split())},
    "2026-11-30": {"story-holds.ndjson", *(f"{name}.v1.ndjson" for name in SECOND.split())},
    "2026-11-30, health": {
        "story-health.ndjson",
        "health.observed.v1.ndjson",
        "source.heartbeat.v1.ndjson",
    },
    "2026-11-30, revisions": {"credit.withdrawn.v1.ndjson", "ledger.restated.v1.ndjson"},
    "2026-11-30, service": {"workload.preemption_announced.v1.ndjson"},
    "2026-11-30, whereabouts": {"workload.located.v1.ndjson"},
    "2026-11-30, work saved": {"story-restore.ndjson"},
    "2026-11-30, sealed closes": {"period.sealed.v1.ndjson", "story-sealed.ndjson"},
    "2026-11-30, work submitted": {"allocation.amended.v1.ndjson"},
    "2026-12-01, proposals": {
        f"budget.{step}.v1.ndjson" for step in ("proposed", "commented", "approved", "rejected", "withdrawn")
    },
    "2026-12-01, requests": {"workload.updated.v1.ndjson"},
    "2026-12-01, rules and ends": {"story-cycles.ndjson"},
}
"""When files were frozen -> which. A file stands under one date for ever."""

DIGESTS = {
    "2026-11-29": "307181e048c6b9d1e3f0665032b8c1d28e502c8a15612288f0a48de1b6803a33",
    "2026-11-30": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, health": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, revisions": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, service": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, whereabouts": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, work saved": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, sealed closes": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-11-30, work submitted": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-12-01, proposals": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-12-01, requests": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
    "2026-12-01, rules and ends": "c7de8f47087d138a127217bbe9ffb554dccee63451ccf75279229a7aed7f1871",
}
"""A date -> the state digest of all that was frozen up to then. A new one is added beside the old; none is changed."""

UNTOLD = {
    "telemetry.sampled": "samples stay out of the journal",
    "policy.applied": "each book takes over rate cards itself",
    "ledger.restated": "it carries what the policy data before it left to be posted, and nothing by itself",
    "ledger.settled": "it carries what a batch before it left to be posted, and nothing by itself",
    "period.closing": "what it fixes is the rows before it, so that it counts by its place and never backwards",
    "period.closed": "it settles what its closing fixed",
    "period.sealed": "it says what the file of the close before it is, and moves nothing",
    "period.reopened": "it undoes the close before it",
}
"""Rows that a book writes by itself -> why one without the rows around it says nothing."""


def frozen_until(repository: Path, date: str) -> list[Event]:
    """Return what was frozen up to a date and can be told by itself, by book and file."""
    names = sorted(set().union(*(files for day, files in FILES.items() if day <= date)))
    paths = [repository / "tests/contract/events/corpus" / name for name in names]
    events = [decode(line) for path in paths for line in path.read_bytes().splitlines()]
    return sorted((e for e in events if e.name not in UNTOLD), key=lambda e: book_of(e.data))


def test_every_file_stands_under_the_date_of_its_freeze(repository: Path) -> None:
    there = sorted(path.name for path in (repository / "tests/contract/events/corpus").glob("*.ndjson"))
    assert sorted(itertools.chain(*FILES.values())) == there
    assert FILES.keys() == DIGESTS.keys()


@pytest.mark.parametrize("turn", [1, -1], ids=["in order", "backwards"])
@pytest.mark.parametrize("date", DIGESTS)
def test_the_corpus_gives_the_state_that_it_gave(
    ledger: Ledger, repository: Path, date: str, turn: int
) -> None:
    events = frozen_until(repository, date)
    for book, batch in itertools.groupby(events, key=lambda e: book_of(e.data)):
        with writing(ledger.engine) as writer:
            append(writer, book, list(batch)[::turn], clock=ledger.clock, calendar=BERLIN)
    with writing(ledger.engine) as writer:
        bring_up_to_date(writer, "alpha", clock=ledger.clock, calendar=BERLIN)
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, BERLIN).ok
        assert state_digest(reader) == DIGESTS[date]


def test_a_type_that_got_a_new_version_is_read_from_the_same_journal(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_s = int(NOON.timestamp()) - 4 * HOUR
    old = [told(start_s, submitted()), told(start_s, started(attempt=0))]
    ledger.append(*old)
    before = ledger.digest()

    def counted_from_one(data: dict[str, object]) -> dict[str, object]:
        return data | {"attempt": data["attempt"] + 1}  # type: ignore[operator]

    monkeypatch.setattr(upcasting, "STEPS", {"workload.started": (counted_from_one,)})
    assert ledger.digest() == before
    assert ledger.append(*old).repeated == len(old)
    ledger.append(told(start_s + HOUR, ended()), told(start_s, submitted("w2")), told(start_s, started("w2")))
    ledger.append(told(start_s + 2 * HOUR, ended("w2")))
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, BERLIN).ok
    bodies = ledger.rows("SELECT workload, body::text FROM ledger.journal WHERE type = 'workload.started'")
    said = {workload: msgspec.json.decode(body) for workload, body in bodies}
    assert [(said[w].get("schema_version"), said[w]["attempt"]) for w in ("w1", "w2")] == [(None, 0), (2, 1)]
    assert ledger.total() == 3 * 8_000 * HOUR
