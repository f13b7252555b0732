"""What is read for the story of one workload."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    granted,
    run_of,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import later, order
from tests.integration.ledger.test_closing import close, lot

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.workload import Submitted
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries, store, story, ticking
from gpuledger.ledger.charges import PHYSICAL
from gpuledger.ledger.costs import cost_of
from gpuledger.ledger.segments import derive


def test_facts_come_in_the_order_of_the_book_up_to_an_instant(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 10 * HOUR))
    with reading(ledger.engine) as reader:
        (whole,) = story.facts_of(reader, "w1", None, 10 * HOUR)
        (part,) = story.facts_of(reader, "w1", CLUSTER, HOUR)
    assert (whole.cluster, len(whole.known), len(part.known)) == (CLUSTER, 3, 2)


def test_near_names_begin_alike(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, "train-101"), *run_of(0, HOUR, "train-102"), *run_of(0, HOUR, "other"))
    with reading(ledger.engine) as reader:
        assert story.near_names(reader, CLUSTER, "train-103") == ["train-102", "train-101"]
        for spelt in ("Train-101", "TRAIN-101", "train-101"):
            assert story.near_names(reader, CLUSTER, spelt)[0] == "train-101"
        assert story.near_names(reader, CLUSTER, "zzz") == []
        with pytest.raises(NotFound, match="train-103") as caught:
            story.facts_of(reader, "train-103", None, HOUR)
    assert "train-102" in caught.value.hint


def test_what_is_worked_out_of_the_facts_at_a_tick_is_the_net_of_the_postings(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR), told(3 * HOUR, started("w1", run="r2", attempt=2)))
    with writing(ledger.engine) as writer:
        ticking.tick(writer, CLUSTER, 4 * HOUR, clock=ledger.clock, calendar=ledger.calendar)
    with reading(ledger.engine) as reader:
        (facts,) = story.facts_of(reader, "w1", CLUSTER, 4 * HOUR)
        posted = [(key, one.amount) for _, key, one in store.posted_of(reader, CLUSTER, ["w1"])]
        ticked_s = queries.ticks(reader)[CLUSTER]
    booked = sum(amount for key, amount in posted if (key.code, key.commodity) == ("charge", PHYSICAL))
    assert cost_of(derive(facts.known, facts.rules), 4 * HOUR, ticked_s) == ((booked, 0, 0), 0)
    assert booked == 24 * GPU_HOUR


def test_use_of_the_window_is_dated_and_clipped(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR), told(3 * HOUR, started("w2", account="org/vision", gpus_milli=1000)))
    with reading(ledger.engine) as reader:
        found = story.window_use(reader, CLUSTER, "org/vision", (HOUR, 5 * HOUR))
        assert found == [(HOUR, 2 * HOUR, 8000, None), (3 * HOUR, 5 * HOUR, 1000, None)]
        assert story.window_use(reader, CLUSTER, "org", (HOUR, 5 * HOUR)) == []


def test_limits_are_those_of_what_runs_or_waits(ledger: Ledger) -> None:
    ledger.append(
        told(0, submitted("w1", time_limit_s=500)), told(0, started("w1")),
        told(0, submitted("w2", time_limit_s=600)), told(0, submitted("w3")),
        *run_of(0, 10, "w4"),
    )  # fmt: skip
    with reading(ledger.engine) as reader:
        assert story.declared_limits(reader, CLUSTER, 100) == {"w1": 500, "w2": 600}


def test_the_limit_is_that_of_the_submission_that_wins(ledger: Ledger) -> None:
    """A repeated submission says no new time, and the earlier one counts, whichever was booked last (law 3)."""
    late = told(50, submitted("w1", time_limit_s=500))
    early = told(0, submitted("w1", time_limit_s=700))
    for events in ([early, late], [late, early]):
        ledger.append(*events)
    with reading(ledger.engine) as reader:
        (facts,) = story.facts_of(reader, "w1", CLUSTER, 100)
        counts = facts.rules.understood([fact for fact in facts.known if isinstance(fact.data, Submitted)])
        assert counts is not None
        assert story.declared_limits(reader, CLUSTER, 100) == {"w1": counts.asked.time_limit_s}


def test_nothing_lapses_and_no_cycle_is_known_where_there_is_none(ledger: Ledger) -> None:
    ledger.append(told(at("2026-11-01T00:00:00Z"), granted("org/vision", "2026-11", GPU_HOUR)))
    with reading(ledger.engine) as reader:
        assert story.lapses(reader, CLUSTER, at("2026-11-01T00:00:00Z"), ledger.calendar) == []
        assert story.unstarted_holds(reader, CLUSTER, 0) == []
        assert story.context(reader, CLUSTER, 2**31) is None


def test_lots_that_a_close_carried_over_are_not_known_as_of_before_it(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, lot("2026-11", 100, expires_at=dt.datetime(2026, 12, 20, tzinfo=dt.UTC))))
    later(ledger, 30 * 24 * HOUR)
    then_s, calendar = at("2026-12-10T00:00:00Z"), ledger.calendar
    with reading(ledger.engine) as reader:
        before, seq = story.lapses(reader, CLUSTER, then_s, calendar), queries.sequences(reader)[CLUSTER]
    close(ledger)
    with reading(ledger.engine) as reader:
        after, end = story.lapses(reader, CLUSTER, then_s, calendar), queries.sequences(reader)[CLUSTER]
        assert story.lapses(reader, CLUSTER, then_s, calendar, seq=seq) == before
        assert story.lapses(reader, CLUSTER, then_s, calendar, seq=end) == after
    assert [lapse.period for lapse in before] == ["2026-11"]
    assert [lapse.period for lapse in after if lapse not in before] == ["2026-12"]
