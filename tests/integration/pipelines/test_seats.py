"""A run that holds more on one host than on another holds it there, in the states of GPUs too."""

import json
from collections.abc import Mapping

import pytest
from tests.integration.pipelines.rows import DAY_S, HOUR_S, START_S, Database, Facts, Host, Segment, at
from tests.integration.pipelines.running import gates, restate

from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
SPAN = Span("c", START_S, START_S + DAY_S, START_S + 9 * DAY_S)
GPU_HOUR = 1000 * HOUR_S


def tell(
    database: Database, kind: str, at_s: int, hosts: Mapping[str, int], told: Mapping[str, int] | None
) -> None:
    """Put a start or a resize of the run of w0 into the journal."""
    body = {
        "cluster": "c", "workload": "w0", "run": "r1", "gpus_milli": sum(hosts.values()), "hosts": list(hosts),
        **({"attempt": 1} if kind == "started" else {}),
        **({"host_gpus_milli": dict(told)} if told else {}),
    }  # fmt: skip
    database.execute("SELECT ledger.make_partitions(now())")
    database.execute(
        "INSERT INTO ledger.journal (book, seq, recorded_at, effective_at, type, source, event_id, digest, workload,"
        " run, body, row_hash)"
        " SELECT 'c', coalesce(max(seq), 0) + 1, now(), :at, :type, 's', :at || :type, '', 'w0', 'r1',"
        " CAST(:body AS json), ''"
        " FROM ledger.journal",
        at=at(at_s),
        type=f"workload.{kind}",
        body=json.dumps(body),
    )


def facts(milli: int = 8000) -> Facts:
    """Six GPUs on h1, which breaks at noon, and two on h2, which does not."""
    return Facts(
        segments=[Segment("c/a", milli, NOON_S - HOUR_S, NOON_S + HOUR_S, hosts=("h1", "h2"))],
        hosts=[
            Host("h1", 8, "healthy", START_S, NOON_S),
            Host("h1", 8, "unhealthy", NOON_S),
            Host("h2", 8, "healthy", START_S),
        ],
        accounts=["c/a"],
    )


def unhealthy(database: Database) -> tuple[float, float]:
    """GPU-hours of the hour after noon that were unhealthy: empty, and held by the run."""
    restate(database.url, SPAN)
    assert set(gates(database.url, SPAN)) <= {"budget_vs_actual"}  # nothing was booked
    (hour,) = [row for row in database.table("gpu_hour") if row["hour_at"] == NOON_S]
    return hour["unhealthy_gpu_ms"] / GPU_HOUR, hour["unhealthy_occupied_gpu_ms"] / GPU_HOUR


def test_what_was_told_counts_and_else_hosts_give_as_much_each(database: Database) -> None:
    database.put(facts())
    assert unhealthy(database) == (4, 4)
    tell(database, "started", NOON_S - HOUR_S, {"h1": 6000, "h2": 2000}, {"h1": 6000, "h2": 2000})
    assert unhealthy(database) == (2, 6)
    held = {r["host"]: r["occupied_gpu_ms"] // GPU_HOUR for r in database.table("host_health_day")}
    assert held == {"h1": 12, "h2": 4}


def test_a_resize_to_the_same_size_elsewhere_counts_from_its_moment(database: Database) -> None:
    database.put(facts())
    tell(database, "started", NOON_S - HOUR_S, {"h1": 6000, "h2": 2000}, {"h1": 6000, "h2": 2000})
    tell(database, "resized", NOON_S + HOUR_S // 2, {"h1": 2000, "h2": 6000}, {"h1": 2000, "h2": 6000})
    assert unhealthy(database) == (4, 4)  # half an hour of six, and half an hour of two
    tell(database, "resized", NOON_S + 3 * HOUR_S // 4, {"h1": 4000, "h2": 4000}, None)
    assert unhealthy(database) == (
        3.5,
        4.5,
    )  # four of the last quarter of an hour: nobody told, so as much each
    held = {r["host"]: r["occupied_gpu_ms"] for r in database.table("host_health_day")}
    assert held["h1"] == (6 * 1.5 + 2 * 0.25 + 4 * 0.25) * GPU_HOUR
    assert sum(held.values()) == 16 * GPU_HOUR


@pytest.mark.parametrize(
    "told",
    [{"h1": 6000, "h2": 1000}, {"h1": 6000, "h3": 2000}, {"h1": 8000}],
    ids=["too little", "another host", "a host is missing"],
)
def test_what_does_not_fit_says_nothing(database: Database, told: dict[str, int]) -> None:
    database.put(facts())
    tell(database, "started", NOON_S - HOUR_S, {"h1": 4000, "h2": 4000}, told)
    assert unhealthy(database) == (4, 4)


def test_what_was_told_of_another_size_says_nothing_of_the_segment(database: Database) -> None:
    database.put(facts(4000))
    tell(database, "started", NOON_S - HOUR_S, {"h1": 6000, "h2": 2000}, {"h1": 6000, "h2": 2000})
    assert unhealthy(database) == (6, 2)
