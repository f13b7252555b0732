"""What hosts call a run follows from how its source names runs."""

import pytest

from gpuledger.events.workload import Ended, Located, Started
from gpuledger.ledger.handles import handles_of, rows


def started(workload: str, run: str = "1") -> Started:
    return Started(cluster="c", workload=workload, run=run, attempt=1, gpus_milli=1000, hosts=[])


@pytest.mark.parametrize(
    ("source", "workload", "run", "handles"),
    [
        ("slurm/west", "4711-1796040000", "1796047200", ["job/4711"]),
        ("slurm/west", "8841_7-1796040000", "1796040000", ["job/8841_7"]),
        ("reconcile/slurm/west", "8841+1-1796040000", "1796040000", ["job/8841+1"]),
        ("kubernetes/west", "vision/train-0/6f1c", "1", ["pod/6f1c", "pod/vision/train-0"]),
        ("kubernetes/west", "vision/group-1", "6f1c", ["pod/6f1c"]),
        ("trace/philly/philly", "application_1-2", "1", []),
        ("nvml/slurm", "4711-1", "1", []),
    ],
)
def test_the_handles_of_a_run(source: str, workload: str, run: str, handles: list[str]) -> None:
    assert list(handles_of(source, started(workload, run))) == handles


def test_a_source_may_tell_of_further_handles() -> None:
    said = Located(cluster="c", workload="w", run="2", handles=["job/8842", "pod/team/x"])
    assert list(rows([("c", "kueue/c", said)])) == [
        ("c", "job/8842", "w", "2"),
        ("c", "pod/team/x", "w", "2"),
    ]


def test_starts_alone_have_handles_by_themselves_and_each_names_its_run() -> None:
    told = [
        ("c", "slurm/c", started("7-1", "1")),
        ("c", "slurm/c", Ended(cluster="c", workload="7-1", run="1", reason="done")),
        ("c", "slurm/c", started("7-1", "5")),
    ]
    assert list(rows(told)) == [("c", "job/7", "7-1", "1"), ("c", "job/7", "7-1", "5")]
