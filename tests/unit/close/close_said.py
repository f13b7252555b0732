"""A close that says a little of everything, for tests that need one."""

import datetime as dt

from gpuledger.close.document import (
    FORMAT,
    Book,
    Document,
    Late,
    Line,
    Physical,
    Policy,
    SourceState,
    Time,
    Weighted,
)
from gpuledger.close.statement import totals
from gpuledger.events.closing import Reconciled, StreamPosition

GPU_HOUR = 3_600_000
W_HOUR = 1000 * GPU_HOUR
"""A GPU-hour of a model that weighs 1, in gpu_ms x per mille."""

AT = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
END = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)


def line(account: str, granted: int = 100, charged: int = 40, rolled_out: int = 30) -> Line:
    """An account that was granted something and used a part of it; in GPU-hours."""
    return Line(
        account=account,
        weighted=Weighted(
            granted=granted * W_HOUR,
            charged=charged * W_HOUR,
            expired=(granted - charged) * W_HOUR,
            rolled_out=rolled_out * W_HOUR,
        ),
        physical=Physical(allocated=charged * GPU_HOUR),
    )


def document(*lines: Line) -> Document:
    """The close of November of ``alpha``."""
    accounts = list(lines) or [line("org/speech", 50, 60, -10), line("org/vision")]
    return Document(
        format=FORMAT,
        cluster="alpha",
        period="2026-11",
        version=1,
        supersedes=None,
        time=Time(timezone="UTC", tzdata="2026b", starts_at=AT, ends_at=END),
        books=[
            Book(
                book=name, first_seq=1, last_seq=rows, rows=rows, postings=rows, head="0a" * 32,
                journal_digest="0b" * 32, postings_digest="0c" * 32,
            )
            for name, rows in (("~org", 3), ("alpha", 12))
        ],
        offsets=[StreamPosition(consumer="ingest", stream="gpu.scheduler.events", partition=0, position=7)],
        sources=[SourceState(source="slurm/alpha", told_until_at=AT, silent=True)],
        policies=[Policy(book="~org", policy="rate_card", seq=2, effective_at=AT, digest="0d" * 32)],
        reconciled=Reconciled(
            digest="0e" * 32, runs=2, ledger_gpu_ms=GPU_HOUR, record_gpu_ms=GPU_HOUR, differences={"late": 1}
        ),
        accounts=accounts,
        late=[Late(account="org/vision", period="2026-10", weighted=Weighted(charged=W_HOUR), physical=Physical())],
        totals=totals(accounts),
    )  # fmt: skip
