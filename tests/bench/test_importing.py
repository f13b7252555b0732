"""How fast the file stream fills journal and postings, against COPY of the same rows; and in how much memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psycopg
import pytest

from gpuledger.database.engine import make_engine
from gpuledger.demo import DATA
from gpuledger.ingest.collector import relax_collector
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

pytestmark = pytest.mark.bench

RECORDS = {"short": 12_000, "full": 82_247}
RATIO_MIN = 0.1
MEMORY_MAX_MIB = 500


class _Beginning:
    """The first records of the Philly trace."""

    name = "philly"

    def __init__(self, records: int) -> None:
        self.records = records

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        return islice(source("philly").read(path, options), self.records)

    def retry(self, raw: bytes, context: object) -> Translated:
        raise AssertionError("nothing is retried here")

    def size(self, path: Path) -> int:
        return path.stat().st_size


def _import(database_url: str, records: int) -> float:
    engine = make_engine(database_url)
    intake = Intake(engine, SystemClock(), Calendar())
    began = time.perf_counter()
    report, _ = run_import(
        _Beginning(records), DATA / "philly.csv.gz", ImportOptions(), LedgerSink(intake), lambda _: None
    )
    took = time.perf_counter() - began
    engine.dispose()
    assert report.accepted == records
    return took


PARTITIONS = """
    SELECT format('CREATE TABLE bare_%s PARTITION OF bare_journal %s', c.relname, pg_get_expr(c.relpartbound, c.oid))
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'ledger.journal'::regclass
"""


def _read(connection: "psycopg.Connection[tuple[object, ...]]", columns: str) -> list[bytes]:
    with connection.cursor().copy(
        f"COPY (SELECT {columns} FROM ledger.journal ORDER BY book, seq) TO STDOUT"
    ) as copy:
        return [bytes(chunk) for chunk in copy]


def _copy(database_url: str) -> tuple[int, float]:
    """COPY the journal's rows into tables with the same keys, indexes and partitions; the best of three.

    The keys of the journal stand in two tables: its identities have one of their own, which every row needs.
    """
    best = float("inf")
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        rows = _read(connection, "*")
        identities = _read(connection, "book, event_id, source, digest, seq")
        partitions = [statement for (statement,) in connection.execute(PARTITIONS)]
        for _ in range(3):
            connection.execute(
                "CREATE TABLE bare_journal (LIKE ledger.journal INCLUDING ALL) PARTITION BY RANGE (recorded_at);"
                "CREATE TABLE bare_identities (LIKE ledger.identities INCLUDING ALL)"
            )
            for statement in partitions:
                connection.execute(statement)
            connection.commit()
            began = time.perf_counter()
            for table, lines in (("bare_journal", rows), ("bare_identities", identities)):
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    for line in lines:
                        copy.write(line)
            connection.commit()
            best = min(best, time.perf_counter() - began)
            connection.execute("DROP TABLE bare_journal, bare_identities")
            connection.commit()
    return len(rows), best


def test_the_file_stream_fills_the_book_at_a_tenth_of_the_speed_of_copy(
    database_url: str, test_form: str
) -> None:
    relax_collector()
    took = _import(database_url, RECORDS[test_form])
    rows, copied = _copy(database_url)
    ratio = copied / took
    print(
        f"\nimport {rows / took:,.0f} journal rows/s with postings, balances and segments;"
        f" COPY {rows / copied:,.0f} rows/s; ratio {ratio:.3f}, at least {RATIO_MIN} wanted"
    )
    assert ratio >= RATIO_MIN


def test_importing_the_whole_trace_needs_less_than_500_mib(tmp_path: Path, test_form: str) -> None:
    """Batches bound the memory, so that a part of the trace shows it as well as the whole."""
    trace = DATA / "philly.csv.gz"
    if test_form == "short":
        import gzip

        trace = tmp_path / "part.csv"
        with gzip.open(DATA / "philly.csv.gz", "rb") as whole:
            trace.write_bytes(b"".join(islice(whole, 25_000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuledger", "import", "philly", str(trace)],
        env={**os.environ, "GPULEDGER_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    peak_mib = usage.ru_maxrss / 1024
    print(f"\npeak memory of the importer {peak_mib:,.0f} MiB, at most {MEMORY_MAX_MIB} allowed")
    assert os.waitstatus_to_exitcode(status) == 0
    assert peak_mib < MEMORY_MAX_MIB
