"""Hosts: in which condition the GPUs of each were, and how often some of them broke."""

from dataclasses import replace

from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.hosts.checks import HOST_HEALTH_DAY
from gpuledger_pipelines.defs.layers.assets import gpu_bucket
from gpuledger_pipelines.gate import DAYS
from gpuledger_pipelines.partitions import Span, days_touched
from gpuledger_pipelines.resources import Rewriting
from gpuledger_pipelines.seats import seats_told


@warehouse_asset(
    group="hosts", gate=HOST_HEALTH_DAY, deps=[gpu_bucket], ledger=("hosts", "segments", "placements")
)
def host_health_day(rewriting: Rewriting, span: Span) -> int:
    """GPU-time of each host by condition, and what runs held of it; whole days that the range touches."""
    days = days_touched(rewriting.calendar(), span)
    rewriting.delete(DAYS, {**span.binds, **days})
    window = replace(span, from_s=days["starts"][0], to_s=days["ends"][-1])
    return rewriting.insert(
        "hosts/host_health_day", {**window.binds, **days, **seats_told(rewriting, window)}
    )


ASSETS = (host_health_day,)
