"""Answers of slurmrestd: of the controller or of accounting, as each record shows."""

from pathlib import Path

import pytest
from tests.unit.sources.slurm.told import (
    Told,
    accounting,
    codes,
    controller,
    document,
    of,
    read,
    read_fixture,
    understood,
)

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

ANSWERS = {
    # file: records, starts, GPUs in milli of the first start, codes
    "slurm-web/slurm-job-gpus-multi-nodes.json": (1, 1, 8000, []),
    "slurm-web/slurmdb-job-failed.json": (1, 1, 0, []),
    "slurm-web/slurmdb-job-gpus-archived.json": (1, 0, None, ["gpus-not-tracked"]),
    "slurm-web/slurmdb-job-gpus-completed.json": (1, 0, None, ["gpus-not-tracked"]),
    "slurm-web/slurmdb-job-gpus-type.json": (1, 0, None, []),
    "slurm-web/slurmdb-job-timeout.json": (1, 1, 0, []),
    "telegraf/slurmrestd-jobs.json": (3, 3, 0, []),
    "rivos/squeue_out.json": (2, 1, 0, []),
}


@pytest.mark.parametrize("file", ANSWERS)
def test_published_answers_are_read(file: str) -> None:
    records, starts, milli, told = ANSWERS[file]
    items = read_fixture("slurmrestd", f"{file}.gz")
    started = of(understood(items), "started")
    assert (len(items), len(started), codes(items)) == (records, starts, told)
    assert milli is None or started[0].data.gpus_milli == milli


@pytest.mark.parametrize("told", [accounting, controller])
def test_a_fault_of_either_answer_can_be_read_again(tmp_path: Path, told: object) -> None:
    assert callable(told)
    (fault,) = read("slurmrestd", tmp_path, document(told(Told(state="NAPPING"))))
    assert isinstance(fault, Fault)
    with pytest.raises(BadRecord, match="NAPPING"):
        source("slurmrestd").retry(fault.raw, fault.context)
    mended = source("slurmrestd").retry(fault.raw.replace(b"NAPPING", b"FAILED"), fault.context)
    assert isinstance(mended, Translated)
    assert len(mended.events) == 3


def test_a_first_job_that_is_broken_does_not_decide_of_the_others(tmp_path: Path) -> None:
    broken = controller(Told(job=1))
    del broken["job_state"]
    fault, good = read("slurmrestd", tmp_path, document(broken, controller(Told(job=2))))
    assert isinstance(fault, Fault)
    assert isinstance(good, Translated)


def test_an_answer_that_is_an_error_is_refused_with_it(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="authentication"):
        read("slurmrestd", tmp_path, b'{"jobs": [], "errors": [{"description": "authentication failed"}]}')


def test_errors_beside_jobs_do_not_hide_them(tmp_path: Path) -> None:
    content = document(controller(Told())).replace(b'"errors": []', b'"errors": ["one node did not answer"]')
    assert len(read("slurmrestd", tmp_path, content)) == 1


def test_the_size_is_that_of_the_file(tmp_path: Path) -> None:
    read("slurmrestd", tmp_path, document())
    assert source("slurmrestd").size(tmp_path / "records") == len(document())
