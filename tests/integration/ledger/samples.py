"""Samples for a ledger under test: what devices were measured at, told in one line."""

from decimal import Decimal

from tests.integration.ledger.books import CLUSTER, Ledger

from gpuledger.database.engine import writing
from gpuledger.events.envelope import make
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.ingest.telemetry import count


def sampled(
    ledger: Ledger,
    from_s: int,
    to_s: int,
    run: str | None = "w1/r1",
    *,
    gpus: str = "g1",
    percent: int = 50,
    cluster: str = CLUSTER,
    handle: str | None = None,
) -> None:
    """The devices were sampled over an interval, while the run held them, or what the host calls by a handle."""
    run = None if handle else run
    measured = [
        GpuSample(uuid=uuid, run=run, handle=handle, gpu_util=Decimal(percent)) for uuid in gpus.split()
    ]
    fact = Sampled(cluster=cluster, host="h1", interval_s=to_s - from_s, gpus=measured)
    event = make(id=f"{gpus}/{run or handle}/{from_s}/{to_s}", source="dcgm/h1", at_s=from_s, data=fact)[0]
    with writing(ledger.engine) as writer:
        assert count(writer, cluster, [event])
