"""The cluster itself: what Slurm writes down is what was done to the jobs."""

from collections.abc import Mapping

import pytest
from tests.slurm.driving import Slurm
from tests.slurm.scenario import Played

pytestmark = pytest.mark.slurm


def test_jobs_that_ran_held_their_gpus_and_a_job_cancelled_before_its_start_none(
    played: Mapping[str, Played],
) -> None:
    assert {name for name, one in played.items() if one.gpu_seconds == 0} == {"cpuonly", "pendcancel"}


def test_sacct_lists_every_run_of_every_job(slurm: Slurm, played: Mapping[str, Played]) -> None:
    started = [record for record in slurm.sacct() if record["time"]["start"]]

    assert len(started) == sum(len(one.rows) for one in played.values())
