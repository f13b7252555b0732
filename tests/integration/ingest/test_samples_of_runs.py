"""Records of schedulers and scrapes of devices, each read by its own source, meet in the figures of runs."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.sources.kubernetes.building import (
    Object,
    admission,
    assignment,
    bound,
    conditions,
    group,
    pod,
    pod_set,
    terminated,
    workload,
)
from tests.unit.sources.slurm.told import T, Told, completion

from gpuledger.database.engine import reading
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.rebuild import check
from gpuledger.ledger.usage import By, UsageQuery, usage
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

WEST = ImportOptions(cluster="west")
Files = Sequence[tuple[str, bytes]]
"""What is imported: SOURCE and content."""


def iso(at_s: int) -> str:
    return f"{dt.datetime.fromtimestamp(at_s, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"


def scrapes(from_s: int, to_s: int, labels: str, percent: int = 50) -> bytes:
    """One device of host n1, scraped once a minute."""
    return b"".join(
        f'# time {iso(at_s)}\nDCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1",hostname="n1",{labels}}} {percent}\n'.encode()
        for at_s in range(from_s, to_s + 1, 60)
    )


def lines(*objects: Object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def figures(
    engine: sa.Engine, intake: Intake, tmp_path: Path, files: Files
) -> tuple[dict[str, int], dict[str, int]]:
    """Import files one after another; return seconds sampled by run, and used gpu_ms by account."""
    for name, content in files:
        (tmp_path / "file").write_bytes(content)
        report, _ = run_import(source(name), tmp_path / "file", WEST, LedgerSink(intake), lambda _: None)
        assert (report.dead_lettered, report.repeated) == (0, 0)
    with reading(engine) as reader:
        used = usage(reader, UsageQuery(by=By.ACCOUNT), T + 86_400).rows
        rows = reader.exec_driver_sql(
            "SELECT workload || '/' || run, sum(sampled_gpu_ms)::bigint / 1000 FROM telemetry.run_buckets GROUP BY 1"
        )
        return dict(map(tuple, rows)), {row.key: row.used_gpu_ms or 0 for row in used}


FIRST = completion(Told(state="NODE_FAIL", submit=T, start=T + 300, end=T + 1800, tres="gres/gpu=1"))
SECOND = completion(Told(submit=T + 1800, start=T + 2400, end=T + 3600, tres="gres/gpu=1", restarts=1))
OTHER = completion(
    Told(job=4712, submit=T, start=T + 3600, end=T + 4500, tres="gres/gpu=1", account="prog-b")
)
SLURM = [
    ("slurm-jobcomp", lines(FIRST)),
    ("dcgm", scrapes(T + 300, T + 3600, 'hpc_job="4711"')),
    ("slurm-jobcomp", lines(SECOND)),
    ("dcgm", scrapes(T + 3601, T + 4500, 'hpc_job="4712"', 100)),
    ("slurm-jobcomp", lines(OTHER)),
]


@pytest.mark.parametrize(
    "order",
    [(0, 1, 2, 3, 4), (1, 3, 0, 2, 4), (0, 2, 4, 1, 3)],
    ids=["beside", "samples first", "runs first"],
)
def test_a_job_has_the_samples_that_name_its_number(
    engine: sa.Engine, intake: Intake, tmp_path: Path, order: Sequence[int]
) -> None:
    by_run, by_account = figures(engine, intake, tmp_path, [SLURM[n] for n in order])
    assert by_run == {
        f"4711-{T}/{T}": 1500,
        f"4711-{T}/{T + 1800}": 1200,
        # The second before the start that the first scrape stands for, and ten minutes in which the job waited again.
        "/job/4711": 601,
        f"4712-{T}/{T}": 841,
    }
    assert by_account == {"west/prog-a": 2700 * 500, "west/prog-b": 841 * 1000}


TASK = completion(
    Told(job=8849, array=8841, task=7, submit=T, start=T + 300, end=T + 1800, tres="gres/gpu=1")
)
ADMITTED = {"admission": admission(assignment("main", 1, 1, "h100")), "conditions": conditions(
    Admitted=("True", "Admitted", iso(T)), Finished=("True", "Succeeded", iso(T + 1500))
)}  # fmt: skip
RUNNING = {**ADMITTED, "conditions": ADMITTED["conditions"][:1]}
OWNED = {"ownerReferences": [{"kind": "Job", "name": "train", "uid": "job-train", "controller": True}]}
OF_KUEUE = pod("train-abc", 1, bound(iso(T + 5)), metadata=OWNED)
GROUPED = pod("w-0", 1, bound(iso(T)), metadata={"annotations": {"pod-group-name": "pg-1"}})


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["runs first", "samples first"])
@pytest.mark.parametrize(
    ("records", "labels", "run"),
    [
        pytest.param(
            ("slurm-jobcomp", lines(TASK)),
            'hpc_job="8849"',
            f"8841_7-{T}/{T}",
            id="the raw number of an array's task",
        ),
        pytest.param(
            (
                "kueue",
                lines(
                    workload("train", [pod_set("main", 1, 1)], RUNNING),
                    OF_KUEUE,
                    workload("train", [pod_set("main", 1, 1)], ADMITTED),
                ),
            ),
            'namespace="team-a",pod="train-abc"',
            f"team-a/job-train/{workload('train', [], None)['metadata']['uid']}/1",
            id="a pod of a Kueue Workload",
        ),
        pytest.param(
            ("kai", lines(group("pg-1", {"nvidia.com/gpu": 1}), GROUPED)),
            'namespace="team-a",pod="w-0"',
            f"team-a/pg-1/{GROUPED['metadata']['uid']}",
            id="a pod of a group",
        ),
    ],
)
def test_a_run_has_the_samples_that_name_it_as_hosts_do(
    engine: sa.Engine,
    intake: Intake,
    tmp_path: Path,
    records: tuple[str, bytes],
    labels: str,
    run: str,
    order: Sequence[int],
) -> None:
    files = [records, ("dcgm", scrapes(T + 360, T + 1200, labels))]
    by_run, _ = figures(engine, intake, tmp_path, [files[n] for n in order])
    assert by_run == {run: 841}
    with reading(engine) as reader:
        assert check(reader, Calendar()).ok


TRAINED = pod(
    "train-0", 1, bound(iso(T), "Succeeded", containerStatuses=[terminated(iso(T + 1200))]), node="n1"
)
PODS = [
    ("pods", lines(TRAINED)),
    ("dcgm", scrapes(T, T + 600, 'namespace="team-a",pod="train-0"')),
    (
        "dcgm",
        scrapes(
            T + 601, T + 1200, f'pod_uid="{TRAINED["metadata"]["uid"]}",namespace="team-a",pod="train-0"'
        ),
    ),
]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)], ids=["runs first", "samples first"])
def test_a_pod_has_the_samples_that_name_it_or_its_uid(
    engine: sa.Engine, intake: Intake, tmp_path: Path, order: Sequence[int]
) -> None:
    by_run, by_account = figures(engine, intake, tmp_path, [PODS[n] for n in order])
    run = f"team-a/train-0/{TRAINED['metadata']['uid']}/1"
    assert by_run == {run: 1141, "/pod/team-a/train-0": 1}
    assert by_account == {"west/team-a": 1141 * 500}
