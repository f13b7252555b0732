"""Waste: allocated time that was idle, squatted or little used, by account and person."""

from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.usage.assets import usage_bucket
from gpuledger_pipelines.defs.waste.checks import WASTE_DAY
from gpuledger_pipelines.gate import DAYS
from gpuledger_pipelines.partitions import Span, days_touched
from gpuledger_pipelines.resources import Rewriting

IDLE_BELOW_PPM = 50_000
"""Below 5 % a run does nothing with its GPUs: squatting, when it lasts."""

LOW_BELOW_PPM = 150_000
"""Below 15 % it does little."""

SQUATTED_AFTER_S = 1_800
"""For how long a run may be idle before it squats."""

SAMPLE_S = 300
"""Samples are kept by five minutes."""


@warehouse_asset(group="waste", gate=WASTE_DAY, deps=[usage_bucket], ledger=("segments", "buckets"))
def waste_day(rewriting: Rewriting, span: Span) -> int:
    """Allocated, used, idle and squatted time by account and person; whole days that the range touches."""
    days = days_touched(rewriting.calendar(), span)
    rewriting.delete(DAYS, {**span.binds, **days})
    # Whether a run that is idle at midnight squats is seen in what lies beyond: as long as it may be idle.
    beyond_s = SQUATTED_AFTER_S + SAMPLE_S
    limits = {
        "idle_below_ppm": IDLE_BELOW_PPM,
        "low_below_ppm": LOW_BELOW_PPM,
        "squatted_after_s": SQUATTED_AFTER_S,
    }
    window = {"from_s": days["starts"][0] - beyond_s, "to_s": days["ends"][-1] + beyond_s}
    return rewriting.insert("waste/waste_day", {**span.binds, **days, **window, **limits})


ASSETS = (waste_day,)
