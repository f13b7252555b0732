"""A warehouse that holds, into which a test puts one fault and asks the table's gate."""

import datetime as dt

import sqlalchemy as sa
from tests.integration.pipelines.rows import (
    DAY_S,
    HOUR_S,
    START_S,
    Database,
    Facts,
    Host,
    Sample,
    Segment,
    Wait,
)  # fmt: skip
from tests.integration.pipelines.running import restate

from gpuledger_pipelines.gate import Gate, Verdict
from gpuledger_pipelines.partitions import Span

NOON_S = START_S + 12 * HOUR_S
SPAN = Span("c", START_S, START_S + DAY_S, START_S + 9 * DAY_S)


def fill(database: Database) -> None:
    """Two accounts on six GPUs for a day; both wait, one gets what it asked for, and the other is idle."""
    facts = Facts(
        segments=[
            Segment("c/a", 2000, NOON_S, NOON_S + 2 * HOUR_S),
            Segment("c/b", 1000, NOON_S, NOON_S + HOUR_S, klass="unallocated"),
        ],
        waits=[
            Wait("c/a", 1000, NOON_S, NOON_S + HOUR_S),
            Wait("c/b", 1000, NOON_S - 600, NOON_S, workload="w1"),
        ],
        hosts=[Host("h1", 4, "healthy", START_S), Host("h2", 2, "unhealthy", START_S)],
        samples=[Sample("w0", NOON_S + offset_s, 2000 * 300, 0) for offset_s in range(0, 1500, 300)],
        accounts=["c/a", "c/b"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    restate(database.url, SPAN)


def verdict(database: Database, gate: Gate) -> Verdict:
    engine = sa.create_engine(database.url, poolclass=sa.NullPool)
    return gate.run(engine, SPAN)


def finding(database: Database, gate: Gate, fault: str) -> list[str]:
    """Put the fault in; return what the gate finds, in words."""
    assert verdict(database, gate).passed
    database.execute(fault)
    found = verdict(database, gate)
    assert all(each.rows for each in found.findings if each.count), "a finding names rows"
    return [each.expectation for each in found.findings]


def noon() -> str:
    return f"to_timestamp({NOON_S})"


def day() -> dt.date:
    return dt.date(2024, 3, 1)
