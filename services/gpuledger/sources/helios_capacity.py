"""GPUs of each virtual cluster by day (``cluster_gpu_number.csv``): the inventory of a Helios cluster.

A virtual cluster stands in for a host, because the trace names no machines. Each row says all that is installed
from the beginning of its day on; a day's row needs no other row.
"""

from collections.abc import Iterator

from gpuledger.events.envelope import make
from gpuledger.events.host import Registered, Retired
from gpuledger.sources.helios_tables import HeliosTable
from gpuledger.sources.pieces import Facts
from gpuledger.sources.table import Record
from gpuledger.sources.values import Odd, gpu_count

MODEL = "unknown"
"""The GPU model: the table names none."""

_PREFIX = "vc"
_NOT_CONFIGURED = "not-configured"


class Capacity(HeliosTable):
    """Rows of ``date``, one column for each virtual cluster, and ``total``."""

    required = ("date", "total")

    @classmethod
    def knows(cls, column: str) -> bool:
        """Say whether the column is one of a virtual cluster, or required."""
        return column in cls.required or column.startswith(_PREFIX)

    def translate(self, record: Record) -> Facts:
        """Return a fact for each virtual cluster: installed with so many GPUs, or gone."""
        values = record.values
        day = values["date"]
        at_s, doubt = self.times.read("date", f"{day} 00:00:00" if day else "")
        gpus = {vc: gpu_count(vc, value) for vc, value in values.items() if vc not in self.required}
        total = gpu_count("total", values["total"])
        events = []
        for vc, count in gpus.items():
            if count:
                fact: Registered | Retired = Registered(
                    cluster=self.cluster, host=vc, gpus=count, gpu_model=MODEL
                )
            else:
                fact = Retired(cluster=self.cluster, host=vc, gpus=0, gpu_model=MODEL, reason=_NOT_CONFIGURED)
            events.append(make(id=f"host/{vc}/{at_s}", source=self.source, at_s=at_s, data=fact))
        oddities = [doubt] if doubt else []
        return tuple(events), [*oddities, *_doubts(gpus, total)]


def _doubts(gpus: dict[str, int], total: int) -> Iterator[Odd]:
    if (added := sum(gpus.values())) != total:
        yield "total-differs", f"total: {total}, but the virtual clusters have {added} GPUs, which counts"
    holders = [vc for vc, count in gpus.items() if count]
    if len(holders) == 1 < len(gpus):
        yield (
            "one-holder",
            f"{holders[0]}: all {total} GPUs of the cluster stand under one of {len(gpus)} virtual clusters",
        )
