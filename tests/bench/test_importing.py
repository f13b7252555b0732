"""How fast the file stream fills journal and postings, against COPY of the same rows; and in how much memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

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

Connection = psycopg.Connection[tuple[Any, ...]]

RECORDS = {"short": 4_000, "full": 16_400}
"""Of one turn; in the full form the turns read the whole trace."""

TURNS = 5
RATIO_MIN = 0.15
MEMORY_MAX_MIB = 500


class _Part:
    """Some records of the Philly trace, one part after the other."""

    name = "philly"

    def __init__(self) -> None:
        self._records = source("philly").read(DATA / "philly.csv.gz", ImportOptions())
        self.records = 0

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        return islice(self._records, self.records)

    def retry(self, raw: bytes, context: object) -> Translated:
        raise AssertionError("nothing is retried here")

    def size(self, path: Path) -> int:
        return path.stat().st_size


def _import(intake: Intake, part: _Part, records: int) -> float:
    part.records = records
    began = time.perf_counter()
    report, _ = run_import(part, DATA / "philly.csv.gz", ImportOptions(), LedgerSink(intake), lambda _: None)
    took = time.perf_counter() - began
    assert report.accepted == records
    return took


PARTITIONS = """
    SELECT format('CREATE TABLE bare_%s PARTITION OF bare_journal %s', c.relname, pg_get_expr(c.relpartbound, c.oid))
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'ledger.journal'::regclass
"""


def _read(connection: Connection, columns: str, after: Mapping[str, int]) -> list[bytes]:
    """Return the rows that were appended since the books ended as given, as COPY writes them."""
    ends = " ".join(f"WHEN '{book}' THEN {seq}" for book, seq in after.items())
    with connection.cursor().copy(
        f"COPY (SELECT {columns} FROM ledger.journal WHERE seq > CASE book {ends or 'WHEN NULL THEN 0'} ELSE 0 END"
        " ORDER BY book, seq) TO STDOUT"
    ) as copy:
        return [bytes(chunk) for chunk in copy]


def _make_bare_tables(connection: Connection) -> None:
    """Make tables with the same keys, indexes and partitions as the journal's.

    Its keys stand in two tables: identities have one of their own, which every row needs.
    """
    connection.execute(
        "CREATE TABLE bare_journal (LIKE ledger.journal INCLUDING ALL) PARTITION BY RANGE (recorded_at);"
        "CREATE TABLE bare_identities (LIKE ledger.identities INCLUDING ALL)"
    )
    for (statement,) in connection.execute(PARTITIONS).fetchall():
        connection.execute(statement)
    connection.commit()


def _copy(connection: Connection, after: Mapping[str, int]) -> tuple[int, float]:
    """COPY the rows that were appended since; return how many there were, and how long it took."""
    lines = {
        "bare_journal": _read(connection, "*", after),
        "bare_identities": _read(connection, "book, event_id, source, digest, seq", after),
    }
    connection.commit()
    began = time.perf_counter()
    for table, of in lines.items():
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for line in of:
                copy.write(line)
    connection.commit()
    return len(lines["bare_journal"]), time.perf_counter() - began


def test_the_file_stream_fills_the_book_at_a_good_part_of_the_speed_of_copy(
    database_url: str, test_form: str
) -> None:
    """Turn by turn, both into tables that grow alike, so that the machine's moods meet both."""
    relax_collector()
    engine = make_engine(database_url)
    intake, part = Intake(engine, SystemClock(), Calendar()), _Part()
    rows, imported, copied, ratios = 0, 0.0, 0.0, []
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        after: dict[str, int] = {}
        for turn in range(TURNS):
            took = _import(intake, part, RECORDS[test_form])
            if turn == 0:
                _make_bare_tables(connection)
            count, bare = _copy(connection, after)
            after = dict(connection.execute("SELECT book, last_seq FROM ledger.books").fetchall())
            rows, imported, copied = rows + count, imported + took, copied + bare
            ratios.append(bare / took)
    engine.dispose()
    ratio = median(ratios)
    print(
        f"\nimport {rows / imported:,.0f} journal rows/s with postings, balances and segments;"
        f" COPY {rows / copied:,.0f} rows/s; ratio turn by turn {ratio:.3f}, at least {RATIO_MIN} wanted"
    )
    assert ratio >= RATIO_MIN


def test_importing_the_whole_trace_needs_less_than_500_mib(
    repository: Path, tmp_path: Path, test_form: str
) -> None:
    """Batches bound the memory, so that a part of the trace shows it as well as the whole."""
    trace = DATA / "philly.csv.gz"
    if test_form == "short":
        import gzip

        trace = tmp_path / "part.csv"
        with gzip.open(DATA / "philly.csv.gz", "rb") as whole:
            trace.write_bytes(b"".join(islice(whole, 25_000)))
    figure = tmp_path / "peak"
    subprocess.run(
        [sys.executable, "-m", "tests.bench.peak", str(figure), "gpuledger", "import", "philly", str(trace)],
        cwd=repository,
        env={**os.environ, "GPULEDGER_HOME": str(tmp_path / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    peak_mib = float(figure.read_text())
    print(f"\npeak memory of the importer {peak_mib:,.0f} MiB, at most {MEMORY_MAX_MIB} allowed")
    assert peak_mib < MEMORY_MAX_MIB
