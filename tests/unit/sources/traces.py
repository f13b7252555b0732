"""How the tests read the traces in tests/fixtures/sources, and variations of their rows."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gpuledger.events.workload import Ended, Preempted, Requeued, Started
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

FIXTURES = Path(__file__).parents[2] / "fixtures/sources"
SHANGHAI = ImportOptions(timezone="Asia/Shanghai")

Items = list[Translated | Fault]


def fixture(name: str, path: str = "", options: ImportOptions | None = None) -> Items:
    """Read a fixture of a source."""
    return list(source(name).read(FIXTURES / name / path, options or ImportOptions()))


def facts(items: Items) -> list[Translated]:
    """Return what was understood."""
    return [item for item in items if isinstance(item, Translated)]


def faults(items: Items) -> list[tuple[int, str]]:
    """Return line and code of each fault."""
    return [(item.line, item.code) for item in items if isinstance(item, Fault)]


def anomalies(items: Items) -> list[tuple[int, str]]:
    """Return line and code of each anomaly."""
    return [(anomaly.line, anomaly.code) for item in facts(items) for anomaly in item.anomalies]


def gpu_seconds(items: Items) -> dict[str, int]:
    """Return thousandths of GPU-seconds / 1000 by workload: each end less its start, times its GPUs."""
    amounts: Counter[str] = Counter()
    for item in facts(items):
        started: dict[str, tuple[int, int]] = {}
        for event, _ in item.events:
            match event.data:
                case Started(run=run, gpus_milli=milli):
                    started[run] = (event.at_s, milli)
                case Ended(run=str(run)) | Requeued(run=str(run)) | Preempted(run=str(run)):
                    since_s, milli = started[run]
                    amounts[event.data.workload] += (event.at_s - since_s) * milli
    return {workload: amount // 1000 for workload, amount in amounts.items()}


def ids(item: Translated) -> list[str]:
    """Return the identities of a record's facts."""
    return [event.id for event, _ in item.events]


def lines(columns: Sequence[str], *rows: Sequence[str]) -> bytes:
    """Return a table."""
    return "".join(",".join(row) + "\n" for row in (columns, *rows)).encode()
