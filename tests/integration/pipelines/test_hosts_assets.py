"""The condition of hosts by day against hand-made cases, and random ones against a walk second by second."""

import datetime as dt

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.pipelines.oracle import Oracle
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Host, Segment
from tests.integration.pipelines.running import restate_one

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
LATER_S = START_S + 9 * DAY_S
SPAN = Span("c", START_S, START_S + DAY_S, LATER_S)
NAMES = ("installed", "healthy", "reserved", "maintenance", "unhealthy", "occupied")


def health(database: Database, facts: Facts, span: Span = SPAN) -> dict[str, list[object]]:
    database.put(facts)
    restate_one(database.url, "host_health_day", span)
    return {
        row["host"]: [*(row[f"{name}_gpu_ms"] / HOUR_S / 1000 for name in NAMES), row["failure_count"], row["state"]]
        for row in database.table("host_health_day")
    }  # fmt: skip


def test_a_host_that_breaks_is_repaired_and_breaks_again(database: Database) -> None:
    facts = Facts(
        segments=[Segment("c/a", 3000, NOON_S, NOON_S + 4 * HOUR_S, hosts=("h1", "h2", "h1"))],
        hosts=[
            Host("h1", 8, "healthy", START_S - DAY_S, NOON_S),
            Host("h1", 8, "unhealthy", NOON_S, NOON_S + 2 * HOUR_S),
            Host("h1", 8, "maintenance", NOON_S + 2 * HOUR_S, NOON_S + 3 * HOUR_S),
            Host("h1", 8, "healthy", NOON_S + 3 * HOUR_S, NOON_S + 6 * HOUR_S),
            Host("h1", 8, "unhealthy", NOON_S + 6 * HOUR_S),
            Host("h2", 4, "reserved", START_S - DAY_S, NOON_S),
            Host("h2", 4, "draining", NOON_S),
        ],
    )
    assert health(database, facts) == {
        "h1": [192, 120, 0, 8, 64, 8, 2, "unhealthy"],
        "h2": [96, 0, 48, 48, 0, 4, 0, "draining"],
    }


def test_trouble_that_is_told_anew_or_was_there_from_the_beginning_is_no_failure(database: Database) -> None:
    facts = Facts(
        hosts=[
            Host("told anew", 8, "healthy", START_S - DAY_S, START_S - HOUR_S),
            Host("told anew", 8, "unhealthy", START_S - HOUR_S, NOON_S),
            Host("told anew", 8, "unhealthy", NOON_S),
            Host("bought broken", 8, "unhealthy", NOON_S),
            Host("one more", 7, "healthy", START_S - DAY_S, NOON_S),
            Host("one more", 1, "unhealthy", START_S - DAY_S, NOON_S),
            Host("one more", 6, "healthy", NOON_S),
            Host("one more", 2, "unhealthy", NOON_S),
        ],
    )
    assert {host: row[-2] for host, row in health(database, facts).items()} == {
        "told anew": 0, "bought broken": 0, "one more": 1,
    }  # fmt: skip


def test_a_host_that_was_taken_away_and_the_hours_to_come_have_no_rows(database: Database) -> None:
    facts = Facts(
        hosts=[Host("gone", 8, "healthy", START_S - DAY_S, START_S), Host("here", 1, "healthy", START_S)]
    )
    found = health(database, facts, Span("c", START_S, START_S + 2 * DAY_S, NOON_S))
    assert found == {"here": [12, 12, 0, 0, 0, 0, 0, "healthy"]}


def test_a_day_is_that_of_the_organisation(database: Database) -> None:
    facts = Facts(hosts=[Host("h", 1, "healthy", START_S - 9 * DAY_S)], timezone="Asia/Kathmandu")
    database.put(facts)
    restate_one(database.url, "host_health_day", SPAN)
    assert {row["day"]: row["installed_gpu_ms"] for row in database.table("host_health_day")} == {
        DAY: 24 * HOUR_S * 1000, DAY + dt.timedelta(days=1): 24 * HOUR_S * 1000,
    }  # fmt: skip


instants = st.integers(START_S - HOUR_S, START_S + DAY_S + HOUR_S)


@st.composite
def inventories(draw: st.DrawFn) -> list[Host]:
    found = []
    for name in ("h0", "h1"):
        edges = [START_S - DAY_S, *sorted(draw(st.sets(instants, max_size=3)))]
        for start, end in zip(edges, [*edges[1:], None], strict=True):
            state = draw(st.sampled_from(["healthy", "unhealthy", "maintenance", "draining", "reserved"]))
            found.append(Host(name, 8, state, start, end))
    return found


@given(hosts=inventories(), now_s=st.just(LATER_S) | instants)
@settings(
    max_examples=settings.get_profile(settings.get_current_profile_name()).max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_hosts_sum_to_what_a_walk_over_the_cluster_finds(
    database: Database, hosts: list[Host], now_s: int
) -> None:
    facts = Facts(hosts=hosts)
    database.clear()
    database.put(facts)
    restate_one(database.url, "host_health_day", Span("c", START_S, START_S + DAY_S, now_s))
    capacity = Oracle(facts, START_S, START_S + DAY_S, now_s).capacity.values()
    rows = database.table("host_health_day")
    for name in ("installed", "unhealthy", "maintenance", "reserved"):
        assert sum(row[f"{name}_gpu_ms"] for row in rows) == sum(amounts[name] for amounts in capacity)
