"""Waits: how long requests waited, those that wait still among them, by the day on which they could first run."""

from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.waits.checks import QUEUE_WAIT_DAY
from gpuledger_pipelines.gate import DAYS
from gpuledger_pipelines.partitions import Span, days_touched
from gpuledger_pipelines.resources import Rewriting


@warehouse_asset(group="waits", gate=QUEUE_WAIT_DAY, ledger=("waits", "segments", "submissions"))
def queue_wait_day(rewriting: Rewriting, span: Span) -> int:
    """Waits by account, class and size; every day of the organisation's zone that the range touches, as a whole."""
    days = days_touched(rewriting.calendar(), span)
    rewriting.delete(DAYS, {**span.binds, **days})
    return rewriting.insert("waits/queue_wait_day", {**span.binds, **days})


ASSETS = (queue_wait_day,)
