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


def _copy(database_url: str) -> tuple[int, float]:
    """COPY the journal's rows into a table with the same keys and indexes; the best of three."""
    best = float("inf")
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        with connection.cursor().copy(
            "COPY (SELECT * FROM ledger.journal ORDER BY book, seq) TO STDOUT"
        ) as copy:
            rows = [bytes(chunk) for chunk in copy]
        for _ in range(3):
            connection.execute("CREATE TABLE bare_copy (LIKE ledger.journal INCLUDING ALL)")
            connection.commit()
            began = time.perf_counter()
            with connection.cursor().copy("COPY bare_copy FROM STDIN") as copy:
                for row in rows:
                    copy.write(row)
            connection.commit()
            best = min(best, time.perf_counter() - began)
            connection.execute("DROP TABLE bare_copy")
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
