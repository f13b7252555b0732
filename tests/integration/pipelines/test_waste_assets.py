"""Waste by day and person against hand-made cases, and random runs against a list."""

import datetime as dt
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Sample, Segment
from tests.integration.pipelines.running import restate, restate_one

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 9 * DAY_S
SPAN = Span("c", START_S, START_S + DAY_S, LATER_S)
FIVE = 300
NAMES = ("allocated", "sampled", "used", "idle", "squatted", "low")


def sampled(
    workload: str, from_s: int, to_s: int, percent: int, gpus: int = 1, klass: str = ""
) -> list[Sample]:
    """Every second of a run from one instant to another, by five minutes."""
    found = []
    for start_s in range(from_s // FIVE * FIVE, to_s, FIVE):
        seconds = min(to_s, start_s + FIVE) - max(from_s, start_s)
        found += [Sample(workload, start_s, 1000 * seconds, percent, gpu=f"g{n}") for n in range(gpus)]
    return found


def waste(database: Database, facts: Facts, span: Span = SPAN) -> dict[tuple[dt.date, str, str], list[int]]:
    database.put(facts)
    restate_one(database.url, "waste_day", span)
    return {
        (row["day"], row["account"], row["user_token"]): [
            *(row[f"{name}_gpu_ms"] // 1000 for name in NAMES), row["squatting_run_count"]
        ]
        for row in database.table("waste_day")
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "percent", "expected"),
    [
        (1800, 0, [1800, 1800, 0, 1800, 0, 0, 0]),  # just so long is not longer
        (1801, 0, [1801, 1801, 0, 1801, 1801, 0, 1]),
        (3600, 4, [3600, 3600, 144, 3600, 3600, 0, 1]),
        (3600, 5, [3600, 3600, 180, 0, 0, 3600, 0]),  # just so much is not below
        (3600, 14, [3600, 3600, 504, 0, 0, 3600, 0]),
        (3600, 15, [3600, 3600, 540, 0, 0, 0, 0]),
    ],
)
def test_a_run_squats_when_it_is_idle_for_longer_than_it_may(
    database: Database, seconds: int, percent: int, expected: list[int]
) -> None:
    """It begins at an odd second, so that its first and last five minutes are not whole."""
    from_s = NOON_S + 77
    facts = Facts(
        segments=[Segment("c/a", 1000, from_s, from_s + seconds, workload="w", user="ann")],
        samples=sampled("w", from_s, from_s + seconds, percent),
    )
    assert waste(database, facts) == {(DAY, "c/a", "ann"): expected}


def test_all_gpus_of_a_run_are_taken_together(database: Database) -> None:
    """One of eight at 100 % is 12.5 %: little, and not nothing."""
    facts = Facts(
        segments=[Segment("c/a", 8000, NOON_S, NOON_S + HOUR_S, workload="w", user="ann")],
        samples=sampled("w", NOON_S, NOON_S + HOUR_S, 0, gpus=7)
        + [Sample("w", at_s, 1000 * FIVE, 100, gpu="busy") for at_s in range(NOON_S, NOON_S + HOUR_S, FIVE)],
    )
    assert waste(database, facts) == {(DAY, "c/a", "ann"): [28800, 28800, 3600, 0, 0, 28800, 0]}


def test_work_in_between_ends_a_stretch_and_so_does_a_gap_without_samples(database: Database) -> None:
    half = [
        *sampled("worked", NOON_S, NOON_S + 1500, 0),
        *sampled("worked", NOON_S + 1500, NOON_S + 1800, 90),
        *sampled("worked", NOON_S + 1800, NOON_S + 3600, 0),
        *sampled("silent", NOON_S, NOON_S + 1500, 0),
        *sampled("silent", NOON_S + 1800, NOON_S + 3600, 0),
    ]
    facts = Facts(
        segments=[
            Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S, workload="worked", user="ann"),
            Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S, workload="silent", user="bob"),
        ],
        samples=half,
    )
    assert waste(database, facts) == {
        (DAY, "c/a", "ann"): [3600, 3600, 270, 3300, 0, 0, 0],
        (DAY, "c/a", "bob"): [3600, 3300, 0, 3300, 0, 0, 0],
    }


def test_unallocated_time_is_nobodys_waste(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S, workload="w", klass="unallocated")],
        samples=sampled("w", NOON_S, NOON_S + HOUR_S, 0),
    )
    assert waste(database, facts) == {}


def test_a_stretch_over_midnight_is_one_and_each_day_has_its_part(database: Database) -> None:
    """Twenty minutes on either side: restated one by one, the days say the same as together."""
    edge_s = START_S + DAY_S
    facts = Facts(
        segments=[Segment("c/a", 1000, edge_s - 1200, edge_s + 1200, workload="w", user="ann")],
        samples=sampled("w", edge_s - 1200, edge_s + 1200, 0),
    )
    expected = [1200, 1200, 0, 1200, 1200, 0, 1]
    assert waste(database, facts) == {(DAY, "c/a", "ann"): expected}
    after = Span("c", edge_s, edge_s + DAY_S, LATER_S)
    restate_one(database.url, "waste_day", after)
    assert [row["squatted_gpu_ms"] for row in database.table("waste_day")] == [1200 * 1000] * 2


def test_squatting_of_a_period_is_a_part_of_the_budget(database: Database) -> None:
    facts = Facts(
        segments=[
            Segment("c/a", 1000, NOON_S, NOON_S + HOUR_S, workload="w", user="ann"),
            Segment("c/b", 1000, NOON_S, NOON_S + HOUR_S, workload="v", user="bob"),
        ],
        samples=[*sampled("w", NOON_S, NOON_S + HOUR_S, 0), *sampled("v", NOON_S, NOON_S + HOUR_S, 0)],
        accounts=["c/a", "c/b"],
    )
    database.put(facts)
    database.post([("c", "gpu_ms_weighted", "c/a", "2024-03", "budget", "grant", 7 * HOUR_S * 1000 * 1000)])
    restate(database.url, SPAN)
    found = {row["account"]: row for row in database.table("waste_period")}
    assert found["c/a"]["period"] == "2024-03"
    assert found["c/a"]["squatted_gpu_ms"] == 1000 * HOUR_S
    assert found["c/a"]["squatted_of_budget_ppm"] == 142_857
    assert found["c/b"]["budget_gpu_ms"] == 0
    assert found["c/b"]["squatted_of_budget_ppm"] is None  # no budget is no share


percents = st.lists(st.sampled_from([None, 0, 4, 5, 60]), min_size=1, max_size=40)


@given(runs=st.lists(st.tuples(st.integers(-20, 280), st.integers(0, 299), percents), max_size=5))
@settings(
    max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_amount_is_that_of_a_list(
    database: Database, runs: list[tuple[int, int, list[int | None]]]
) -> None:
    """Each run begins some five minutes and seconds from midnight and is used so much in each five minutes after."""
    facts = Facts()
    expected: dict[str, list[int]] = defaultdict(lambda: [0] * 4)
    for n, (start, odd, used) in enumerate(runs):
        from_s = START_S + start * FIVE + odd
        edges = [from_s, *(START_S + (start + k) * FIVE for k in range(1, len(used) + 1))]
        parts = list(zip(edges, edges[1:], used, strict=False))
        facts.segments.append(Segment("c/a", 1000, from_s, edges[-1], workload=f"w{n}", user=f"u{n}"))
        stretch: list[tuple[int, int]] = []
        for begin_s, end_s, percent in [*parts, (0, 0, 60)]:
            if percent is not None and end_s:
                facts.samples.append(
                    Sample(f"w{n}", begin_s // FIVE * FIVE, 1000 * (end_s - begin_s), percent)
                )
            if percent is not None and percent < 5 and end_s:
                stretch.append((begin_s, end_s))
                continue
            long = bool(stretch) and stretch[-1][1] - stretch[0][0] > 1800
            for idle_s, over_s in stretch:
                if START_S <= idle_s < START_S + DAY_S:
                    expected[f"u{n}"][2] += 1000 * (over_s - idle_s)
                    expected[f"u{n}"][3] += 1000 * (over_s - idle_s) * long
            stretch = []
        for begin_s, end_s, percent in parts:
            if START_S <= begin_s < START_S + DAY_S:
                expected[f"u{n}"][0] += 1000 * (end_s - begin_s)
                expected[f"u{n}"][1] += 1000 * (end_s - begin_s) * (percent is not None)
    database.clear()
    database.put(facts)
    restate_one(database.url, "waste_day", SPAN)
    names = ("allocated", "sampled", "idle", "squatted")
    found = {
        row["user_token"]: [row[f"{name}_gpu_ms"] for name in names] for row in database.table("waste_day")
    }
    assert found == {user: amounts for user, amounts in expected.items() if any(amounts)}
