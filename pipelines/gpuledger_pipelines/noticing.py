"""Write down what the pipelines come upon, so that people are told of it.

Nothing is sent here, and what cannot be written down stops nothing: the check and the close say themselves that they
failed.
"""

import datetime as dt

from gpuledger.kernel.clock import Clock, SystemClock
from gpuledger.notify.following import check_failed, close_failed
from gpuledger.notify.notices import Notice
from gpuledger.notify.noting import note_found
from gpuledger.notify.payloads import CloseFailed, Finding
from gpuledger.settings import load
from gpuledger_pipelines.gate import Verdict
from gpuledger_pipelines.partitions import Span, utc_days
from gpuledger_pipelines.resources import PROGRESS, Warehouse

_CELL_MOST = 200
"""Characters of a value that a notice shows."""


def notice_check(
    warehouse: Warehouse, table: str, span: Span, verdict: Verdict, clock: Clock | None = None
) -> None:
    """Write down that a gate does not hold; one that only looked at rows of before is settled by the next run.

    Args:
        warehouse: The database.
        table: The table behind the gate.
        span: What was restated.
        verdict: What the gate found.
        clock: The present.
    """
    if verdict.passed or verdict.outdated:
        return
    clock = clock or SystemClock()
    first, last = utc_days(span.from_s, span.to_s)
    findings = [
        Finding(
            expectation=each.expectation,
            rows_count=each.count,
            rows=[{name: str(value)[:_CELL_MOST] for name, value in row.items()} for row in each.rows],
        )
        for each in verdict.findings
    ]
    days = (first, last + dt.timedelta(days=1))
    page = (
        verdict.page if "://" in verdict.page else None
    )  # a path of this machine is nothing to readers elsewhere
    notice = check_failed(span.cluster, table, days, findings, clock.now(), page=page)
    _note(warehouse, notice, clock)


def notice_close(warehouse: Warehouse, data: CloseFailed, clock: Clock | None = None) -> None:
    """Write down that a close stopped.

    Args:
        warehouse: The database.
        data: Which one, where, and why.
        clock: The present.
    """
    clock = clock or SystemClock()
    _note(warehouse, close_failed(data, clock.now()), clock)


def _note(warehouse: Warehouse, notice: Notice, clock: Clock) -> None:
    fault = note_found(load(), warehouse.engine(), notice, clock)
    if fault is not None:
        PROGRESS.warning("%s", fault)
