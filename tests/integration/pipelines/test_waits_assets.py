"""Waits by day against hand-made cases, and random ones against a list and the simulator's estimate."""

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Segment, Wait
from tests.integration.pipelines.running import restate_one

from gpuledger.kernel.survival import Lengths
from gpuledger.simulator.waits import size_of
from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
NOW_S = START_S + 20 * HOUR_S
SPAN = Span("c", START_S, START_S + DAY_S, NOW_S)


def rows(database: Database, facts: Facts, span: Span = SPAN) -> dict[tuple[str, ...], dict[str, object]]:
    database.put(facts)
    restate_one(database.url, "queue_wait_day", span)
    return {
        (row["account"], row["class"], row["size"], row["turn"]): row
        for row in database.table("queue_wait_day")
    }


def test_who_waits_still_and_who_gave_up_count_for_as_long_as_they_waited(database: Database) -> None:
    """Of four that asked for one GPU, two started after 60 and 600 s, one gave up after 300 s, one waits."""
    facts = Facts(
        segments=[
            Segment("c/a", 1000, NOON_S + 60, None, workload="one"),
            Segment("c/a", 1000, NOON_S + 600, None, workload="two"),
        ],
        waits=[
            Wait("c/a", 1000, NOON_S, NOON_S + 60, workload="one"),
            Wait("c/a", 1000, NOON_S, NOON_S + 600, workload="two"),
            Wait("c/a", 1000, NOON_S, NOON_S + 300, workload="gave up"),
            Wait("c/a", 1000, NOON_S, None, workload="waits"),
        ],
    )
    (row,) = rows(database, facts).values()
    assert row == {
        "cluster": "c", "day": DAY, "account": "c/a", "class": "allocated", "size": "1", "turn": "first",
        "request_count": 4, "started_count": 2, "at_once_count": 0, "waiting_count": 1, "withdrawn_count": 1,
        # A quarter is over after 60 s. Of the two that are left at 600 s one starts: 5 in 8 are over then.
        "p50_s": 600, "p90_s": None, "p99_s": None, "longest_s": 8 * HOUR_S,
        "started_after_s": [60, 600], "unstarted_for_s": [300, 8 * HOUR_S], "as_of_at": NOW_S,
    }  # fmt: skip


def test_a_wait_that_was_cut_counts_once_as_what_was_asked_for_at_last(database: Database) -> None:
    """One asks for one GPU, then for two, then another account does; it starts. Another is cut and waits still."""
    facts = Facts(
        segments=[Segment("c/b", 2000, NOON_S + 900, None, workload="one")],
        waits=[
            Wait("c/a", 1000, NOON_S, NOON_S + 300, workload="one"),
            Wait("c/a", 2000, NOON_S + 300, NOON_S + 600, workload="one", began_s=NOON_S),
            Wait("c/b", 2000, NOON_S + 600, NOON_S + 900, workload="one", began_s=NOON_S),
            Wait("c/a", 1000, NOON_S, NOON_S + 300, workload="waits"),
            Wait("c/b", 2000, NOON_S + 300, None, workload="waits", began_s=NOON_S),
        ],
    )
    (row,) = rows(database, facts).values()
    assert (row["account"], row["size"], row["turn"]) == ("c/b", "2", "first")
    assert (row["request_count"], row["started_count"], row["waiting_count"], row["withdrawn_count"]) == (
        2,
        1,
        1,
        0,
    )
    assert (row["started_after_s"], row["unstarted_for_s"]) == ([900], [8 * HOUR_S])


def test_a_start_in_the_second_of_the_request_is_a_wait_of_nothing(database: Database) -> None:
    """What nobody submitted is no request: of its wait nothing is known."""
    facts = Facts(
        segments=[
            Segment("c/a", 500, NOON_S, NOON_S + 60, workload="told"),
            Segment("c/a", 500, NOON_S, NOON_S + 60, workload="never told"),
            Segment("c/a", 0, NOON_S, NOON_S + 60, workload="without GPUs"),
            # The second half of a run is no start.
            Segment("c/a", 500, NOON_S + 60, NOON_S + 90, workload="told", klass="unallocated"),
        ],
        submitted=["told", "without GPUs"],
    )
    (row,) = rows(database, facts).values()
    assert (row["size"], row["request_count"], row["at_once_count"]) == ("<1", 1, 1)
    assert (row["p50_s"], row["p99_s"], row["started_after_s"]) == (0, 0, [0])


def test_a_wait_after_a_run_is_told_apart_and_the_class_is_that_of_the_run(database: Database) -> None:
    facts = Facts(
        segments=[
            Segment("c/a", 9000, NOON_S + 60, NOON_S + 120, workload="w", run="1", klass="unallocated"),
            Segment("c/a", 9000, NOON_S + 180, None, workload="w", run="2"),
        ],
        waits=[
            Wait("c/a", 9000, NOON_S, NOON_S + 60, workload="w"),
            Wait("c/a", 9000, NOON_S + 120, NOON_S + 180, workload="w"),
            Wait("c/a", 9000, NOON_S, None, minimum_runtime_s=0, workload="free"),
        ],
    )
    found = rows(database, facts)
    assert {key: row["request_count"] for key, row in found.items()} == {
        ("c/a", "unallocated", "9-16", "first"): 2,
        ("c/a", "allocated", "9-16", "again"): 1,
    }


def test_a_wait_belongs_to_the_day_of_the_organisation_on_which_it_began(database: Database) -> None:
    """At half past six in the evening, UTC, the next day begins in Kolkata; the run comes two days later."""
    edge_s = START_S + 18 * HOUR_S + 1800
    facts = Facts(
        segments=[Segment("c/a", 1000, START_S + 3 * DAY_S, None, workload="w")],
        waits=[
            Wait("c/a", 1000, edge_s - 1, START_S + 3 * DAY_S, workload="w"),
            Wait("c/a", 1000, edge_s, None),
        ],
        timezone="Asia/Kolkata",
    )
    database.put(facts)
    restate_one(database.url, "queue_wait_day", Span("c", START_S, START_S + DAY_S, START_S + 5 * DAY_S))
    assert {row["day"]: row["started_count"] for row in database.table("queue_wait_day")} == {
        DAY: 1, DAY + dt.timedelta(days=1): 0,
    }  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What a workload asked for, when; after how long it started, or was withdrawn, if it did."""

    account: str
    gpus_milli: int
    minimum_runtime_s: int
    from_s: int
    length_s: int | None
    starts: bool
    klass: str


requests = st.builds(
    Request,
    account=st.sampled_from(["c/a", "c/b"]),
    gpus_milli=st.sampled_from([500, 1000, 2000, 2001, 4000, 8000]),
    minimum_runtime_s=st.sampled_from([0, 3600]),
    from_s=st.integers(START_S - HOUR_S, START_S + DAY_S + HOUR_S),
    length_s=st.none() | st.sampled_from([0, 1, 2, 3, 5, 8, 13, 60, 2 * HOUR_S, DAY_S]),
    starts=st.booleans(),
    klass=st.sampled_from(["allocated", "unallocated"]),
)


def put(database: Database, asked: list[Request]) -> None:
    facts = Facts(submitted=[f"w{n}" for n in range(len(asked))])
    for n, r in enumerate(asked):
        to_s = None if r.length_s is None else r.from_s + r.length_s
        if to_s is not None and r.starts:
            facts.segments.append(
                Segment(r.account, r.gpus_milli, to_s, None, workload=f"w{n}", klass=r.klass)
            )
        if r.length_s != 0:
            facts.waits.append(Wait(r.account, r.gpus_milli, r.from_s, to_s, r.minimum_runtime_s, f"w{n}"))
    database.clear()
    database.put(facts)


@given(
    asked=st.lists(requests, max_size=30), now_s=st.just(NOW_S) | st.integers(START_S, START_S + 2 * DAY_S)
)
@settings(
    max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_wait_is_that_of_a_list_and_every_quantile_that_of_the_simulator(
    database: Database, asked: list[Request], now_s: int
) -> None:
    put(database, asked)
    restate_one(database.url, "queue_wait_day", Span("c", START_S, START_S + DAY_S, now_s))
    expected: dict[tuple[str, str, str], Lengths] = defaultdict(Lengths)
    for r in asked:
        if not START_S <= r.from_s < min(START_S + DAY_S, now_s) or (r.length_s == 0 and not r.starts):
            continue
        over = r.length_s is not None and r.from_s + r.length_s <= now_s
        started = over and r.starts
        klass = r.klass if started else "allocated" if r.minimum_runtime_s else "unallocated"
        length_s = r.length_s if over and r.length_s is not None else now_s - r.from_s
        expected[r.account, klass, size_of(r.gpus_milli)].add(length_s, ended=started)
    found = {(row["account"], row["class"], row["size"]): row for row in database.table("queue_wait_day")}
    assert found.keys() == expected.keys()
    for key, lengths in expected.items():
        row = found[key]
        assert row["started_after_s"] == sorted(lengths.ended.elements())
        assert row["unstarted_for_s"] == sorted(lengths.unended.elements())
        assert [row["p50_s"], row["p90_s"], row["p99_s"]] == lengths.quantiles(500, 900, 990)
        assert row["longest_s"] == lengths.longest
        assert row["request_count"] == lengths.count


def test_a_quantile_is_exact_where_a_thousand_are_lost_from_sight_one_by_one(database: Database) -> None:
    """Between any two starts somebody gives up: no factor cancels out, and none is rounded."""
    asked = [
        Request("c/a", 1000, 3600, START_S + n, 2 * n + 1 + odd, not odd, "allocated")
        for n in range(1000)
        for odd in (0, 1)
    ]
    put(database, asked)
    restate_one(database.url, "queue_wait_day", Span("c", START_S, START_S + DAY_S, START_S + DAY_S))
    (row,) = database.table("queue_wait_day")
    lengths = Lengths()
    for r in asked:
        assert r.length_s is not None
        lengths.add(r.length_s, ended=r.starts)
    assert [row["p50_s"], row["p90_s"], row["p99_s"]] == lengths.quantiles(500, 900, 990)
    assert all(before <= after for before, after in pairwise(row["started_after_s"]))


@pytest.mark.parametrize("gpus_milli", [1, 999, 1000, 1001, 2000, 3000, 4000, 4001, 8000, 64_000, 64_001])
def test_sizes_are_named_as_simulations_name_them(database: Database, gpus_milli: int) -> None:
    (key,) = rows(database, Facts(waits=[Wait("c/a", gpus_milli, NOON_S, None)]))
    assert key[2] == size_of(gpus_milli)


def test_a_submission_is_looked_up_by_its_workload_whatever_the_planner_knows(database: Database) -> None:
    """A book that was just imported has no statistics, and its submissions are as many as its runs."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("SET enable_seqscan = off")
        plan = connection.exec_driver_sql(
            "EXPLAIN SELECT FROM ledger_read.submissions WHERE cluster = 'c' AND workload = 'w'"
        ).scalars()
        conditions = [line for line in plan if "Index Cond" in line]
    assert conditions
    assert all("workload = 'w'" in line for line in conditions)
