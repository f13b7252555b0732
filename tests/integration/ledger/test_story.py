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

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries, story


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
        assert story.near_names(reader, CLUSTER, "Train-101")[0] == "train-101"
        assert story.near_names(reader, CLUSTER, "zzz") == []
        with pytest.raises(NotFound, match="train-103") as caught:
            story.facts_of(reader, "train-103", None, HOUR)
    assert "train-102" in caught.value.hint


def test_cost_is_the_net_of_the_postings(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR), *run_of(0, HOUR, "w2", klass="unallocated"))
    day = dt.date(1970, 1, 1)
    with reading(ledger.engine) as reader:
        assert story.cost_of(reader, CLUSTER, "w1", day) == (16 * GPU_HOUR, 0, 0)
        assert story.cost_of(reader, CLUSTER, "w2", day) == (0, 8 * GPU_HOUR, 0)
        assert story.cost_of(reader, CLUSTER, "w1", dt.date(1969, 12, 31)) == (0, 0, 0)


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


def test_nothing_lapses_and_no_cycle_is_known_where_there_is_none(ledger: Ledger) -> None:
    ledger.append(told(at("2026-11-01T00:00:00Z"), granted("org/vision", "2026-11", GPU_HOUR)))
    with reading(ledger.engine) as reader:
        assert story.lapses(reader, CLUSTER, dt.date(2026, 11, 1), ledger.calendar) == []
        assert story.unstarted_holds(reader, CLUSTER, 0) == []
        assert story.context(reader, CLUSTER, 2**31) is None


def test_lots_that_a_close_carried_over_are_not_known_as_of_before_it(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, lot("2026-11", 100, expires_at=dt.datetime(2026, 12, 20, tzinfo=dt.UTC))))
    later(ledger, 30 * 24 * HOUR)
    day, calendar = dt.date(2026, 11, 30), ledger.calendar
    with reading(ledger.engine) as reader:
        before, seq = story.lapses(reader, CLUSTER, day, calendar), queries.sequences(reader)[CLUSTER]
    close(ledger)
    with reading(ledger.engine) as reader:
        after, end = story.lapses(reader, CLUSTER, day, calendar), queries.sequences(reader)[CLUSTER]
        assert story.lapses(reader, CLUSTER, day, calendar, seq=seq) == before
        assert story.lapses(reader, CLUSTER, day, calendar, seq=end) == after
    assert [lapse.period for lapse in before] == ["2026-11"]
    assert [lapse.period for lapse in after if lapse not in before] == ["2026-12"]
