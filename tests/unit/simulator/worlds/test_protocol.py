"""What a run says of itself."""

import pytest

from gpuledger.simulator.jobs import Job
from gpuledger.simulator.worlds.protocol import Run


def run(checkpoint_s: int | None) -> Run:
    """It starts at 1000 and loads until 1100."""
    job = Job(
        job="j",
        account="org/a",
        user="u",
        gpus_milli=8000,
        submitted_s=0,
        work_s=5000,
        minimum_runtime_s=0,
        checkpoint_s=checkpoint_s,
    )
    return Run(
        job=job,
        run=1,
        placement={"h": 8000},
        klass="allocated",
        started_s=1000,
        protected_until_s=1000,
        loaded_s=1100,
    )


@pytest.mark.parametrize(
    ("at_s", "saved_s"), [(1000, 1000), (1399, 1000), (1400, 1400), (1699, 1400), (1700, 1700), (2001, 2000)]
)
def test_work_is_saved_each_time_it_has_worked_for_so_long(at_s: int, saved_s: int) -> None:
    assert run(300).checkpointed_s(at_s) == saved_s


def test_work_that_is_never_saved() -> None:
    assert run(None).checkpointed_s(9999) == 1000
