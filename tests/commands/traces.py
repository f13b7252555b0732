"""The bundled traces, and what they come to by arithmetic that shares no code with the product."""

import csv
import datetime as dt
import gzip
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path

DATA = Path(__file__).parents[2] / "services/gpuledger/demo/data"
PHILLY = DATA / "philly.csv.gz"
ALEX = DATA / "alex.csv.gz"
OPENB_PODS = DATA / "openb_pod_list_default.csv.gz"
BUDGET = DATA / "budget.yaml"

DAY_S = 86_400
WINDOW_S = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class Run:
    """GPUs that were held from one second to another."""

    key: str
    start_s: int
    end_s: int
    milli: int
    used_percent: Decimal = Decimal(0)

    @property
    def gpu_ms(self) -> int:
        """The amount."""
        return (self.end_s - self.start_s) * self.milli


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a compressed table."""
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


def philly(path: Path = PHILLY) -> list[Run]:
    """Return the jobs of Philly, keyed by virtual cluster."""
    found = []
    for row in rows(path):
        start_s = int(dt.datetime.fromisoformat(row["timestamp"] + "+00:00").timestamp())
        end_s = start_s + int(row["duration"].partition(".")[0])
        found.append(Run(row["cluster"], start_s, end_s, int(row["num_gpus"]) * 1000))
    return found


def alex() -> list[Run]:
    """Return the jobs of cluster alex, keyed by project."""
    return [
        Run(
            row["project"],
            int(row["start_time"]),
            int(row["start_time"]) + int(row["duration"]),
            int(row["num_acc"]) * 1000,
            Decimal(row["acc_utilization_avg"] or 0),
        )
        for row in rows(ALEX)
        if row["cluster"] == "alex"
    ]


def openb() -> list[Run]:
    """Return the pods of openb that were scheduled, keyed by QoS."""
    return [
        Run(
            row["qos"].lower(),
            int(row["scheduled_time"]),
            int(row["deletion_time"]),
            int(row["num_gpu"]) * int(row["gpu_milli"]),
        )
        for row in rows(OPENB_PODS)
        if row["scheduled_time"]
    ]


def by_key(runs: list[Run]) -> Counter[str]:
    """Sum by key."""
    sums: Counter[str] = Counter()
    for run in runs:
        sums[run.key] += run.gpu_ms
    return sums


def by_window(runs: list[Run], edges: list[int]) -> list[int]:
    """Sum the parts of the runs that lie between neighbouring edges."""
    sums: defaultdict[int, int] = defaultdict(int)
    for run in runs:
        for index, (start_s, end_s) in enumerate(itertools.pairwise(edges)):
            sums[index] += max(0, min(run.end_s, end_s) - max(run.start_s, start_s)) * run.milli
    return [sums[index] for index in range(len(edges) - 1)]


def hours(gpu_ms: int) -> str:
    """Return GPU-hours with three decimals, half to even."""
    return str((Decimal(gpu_ms) / 3_600_000).quantize(Decimal("0.001"), ROUND_HALF_EVEN))
