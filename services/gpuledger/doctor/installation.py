"""Judge what all clusters share: database, roles, clocks, disk, streams, letters, notices. Pure."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.doctor.findings import Finding, Level, fine
from gpuledger.ledger.queries import StreamStatus
from gpuledger.streams.topics import Described

LAG = dt.timedelta(minutes=10)
"""How old the newest record that was booked may be while others wait."""

_SKEW_NOTED_S, _SKEW_WRONG_S = 2.0, 60.0
_DISK_NOTED, _DISK_WRONG = 10 * 2**30, 2**30
_SERVER_LEAST = 150_000
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What was seen of the database.

    Args:
        server_version: As the server numbers itself, such as 180006.
        revision: The schema's; None before any.
        wanted: The revision that this version needs.
        skew_s: The server's clock less this machine's.
        roles_missing: Roles that there are not.
        unguarded: What guards of the history are off, a line each.
    """

    server_version: int
    revision: str | None
    wanted: str
    skew_s: float
    roles_missing: Sequence[str] = ()
    unguarded: Sequence[str] = ()


def of_database(facts: DatabaseFacts) -> Iterator[Finding]:
    """Judge the database: its version, its schema, its clock, its roles, the guards of the history."""
    major = facts.server_version // 10_000
    if facts.server_version < _SERVER_LEAST:
        what = f"PostgreSQL {major} is older than what gpuledger is tested on"
        yield Finding("database", Level.WRONG, what, remedy="use PostgreSQL 15 or newer")
    else:
        yield fine("database", f"PostgreSQL {major} answers")
    if facts.revision != facts.wanted:
        what = f"the schema is at {facts.revision or 'no revision'}, this version needs {facts.wanted}"
        yield Finding("schema", Level.WRONG, what, command="gpuledger db upgrade")
    else:
        yield fine("schema", f"the schema is at {facts.wanted}")
    yield _of_clock(facts.skew_s)
    if facts.roles_missing:
        what = f"roles are missing: {', '.join(facts.roles_missing)}"
        remedy = "run the migrations as a login that may make roles, or have an administrator make them"
        yield Finding("roles", Level.WRONG, what, remedy=remedy, command="gpuledger db upgrade")
    else:
        yield fine("roles", "the three roles are there")
    if facts.unguarded:
        more = f", and {len(facts.unguarded) - 1} more" if len(facts.unguarded) > 1 else ""
        what = f"history is not guarded as it must be: {facts.unguarded[0]}{more}"
        yield Finding("guards", Level.WRONG, what, command="gpuledger audit verify")
    else:
        yield fine("guards", "history only grows: triggers, roles and constraints stand")


def _of_clock(skew_s: float) -> Finding:
    what = f"the database's clock is {abs(skew_s):.1f} s {'ahead of' if skew_s >= 0 else 'behind'} this machine's"
    if abs(skew_s) > _SKEW_WRONG_S:
        remedy = "let both follow NTP: what is recorded where would not be in order"
        return Finding("clocks", Level.WRONG, what, remedy=remedy)
    if abs(skew_s) > _SKEW_NOTED_S:
        return Finding("clocks", Level.NOTE, what, remedy="let both follow NTP")
    return fine("clocks", what)


def of_disk(folder: str, free_bytes: int) -> Finding:
    """Judge how much room the data folder's disk has."""
    what = f"{free_bytes / 2**30:,.1f} GiB are free where {folder} is"
    if free_bytes < _DISK_WRONG:
        remedy = "make room: PostgreSQL stops when its disk is full"
        return Finding("disk", Level.WRONG, what, remedy=remedy)
    if free_bytes < _DISK_NOTED:
        return Finding("disk", Level.NOTE, what, remedy="make room before it is needed")
    return fine("disk", what)


def of_topics(described: Sequence[Described]) -> Iterator[Finding]:
    """Judge whether the topics are there, and whether anything was ever published on them."""
    missing = [each.topic for each in described if not each.partitions]
    if missing:
        what = f"topics are missing: {', '.join(missing)}"
        yield Finding("topics", Level.WRONG, what, command="gpuledger topics create")
    empty = [each.topic for each in described if each.partitions and not each.records]
    there = len(described) - len(missing)
    if there:
        yield fine("topics", f"{there} topics are there")
    if empty:
        what = f"nothing stands on {', '.join(empty)}"
        remedy = "a collector, an agent or gpuledger import publishes; one whose records were all deleted is empty too"
        yield Finding("topics", Level.NOTE, what, remedy=remedy, command="gpuledger topics list")


def of_streams(statuses: Sequence[StreamStatus], now: dt.datetime) -> Iterator[Finding]:
    """Judge whether what was published is booked: rows that wait while nobody reads, or reads too slowly."""
    for status in statuses:
        place = f"{status.stream}/{status.partition} of {status.consumer}"
        if not status.waiting:
            continue
        seen = status.seen_at
        if seen is None or now - seen > LAG:
            since = "ever" if seen is None else f"since {seen:%Y-%m-%d %H:%M} UTC"
            what = f"{status.waiting:,} records wait on {place}, and no worker has looked {since}"
            yield Finding("ingest", Level.WRONG, what, command=f"gpuledger ingest --topic {status.stream}")
        elif status.published_at is not None and now - status.published_at > LAG:
            late = int((now - status.published_at).total_seconds() // 60)
            what = f"{place} is {late} minutes behind: {status.waiting:,} records wait"
            remedy = "start more workers: a topic is shared among as many as it has partitions"
            yield Finding("ingest", Level.WRONG, what, remedy=remedy)
        else:
            what = f"{status.waiting:,} records wait on {place}, and a worker is at them"
            yield Finding("ingest", Level.NOTE, what)
    if statuses and not any(status.waiting for status in statuses):
        yield fine("ingest", f"{len(statuses)} positions, and nothing waits behind them")


def of_letters(by_code: Mapping[str, int]) -> Finding:
    """Judge the dead letters that wait for a person.

    Args:
        by_code: Reason -> how many wait.
    """
    if not by_code:
        return fine("dead letters", "no dead letter waits")
    most = sorted(by_code.items(), key=lambda each: (-each[1], each[0]))
    named = ", ".join(f"{count:,} {code}" for code, count in most[:_SHOWN])
    more = f", and {len(most) - _SHOWN} more reasons" if len(most) > _SHOWN else ""
    what = f"{sum(by_code.values()):,} records could not be read: {named}{more}"
    remedy = "they are kept: mend the cause, then read them again"
    return Finding("dead letters", Level.WRONG, what, remedy=remedy, command="gpuledger dlq list")


def of_outbox(unpublished: int) -> Finding:
    """Judge what was decided and did not reach the broker."""
    if not unpublished:
        return fine("outbox", "everything that was decided is published")
    what = f"{unpublished:,} messages are not published yet"
    remedy = "the policy's service publishes them with its next cycle, once the broker answers"
    return Finding("outbox", Level.NOTE, what, remedy=remedy, command="gpuledger policy status")


def of_notices(given_up: int, due: int) -> Finding:
    """Judge whether people are told what they are to be told."""
    if given_up:
        what = f"{given_up:,} deliveries were given up in the last week"
        return Finding("notifications", Level.WRONG, what, command="gpuledger notify list")
    if due:
        what = f"{due:,} deliveries are due"
        remedy = "the sensor notices sends them, or a timer: nothing is sent unless one of them runs"
        return Finding(
            "notifications", Level.NOTE, what, remedy=remedy, command="gpuledger notify run --send"
        )
    return fine("notifications", "nobody waits to be told anything")
