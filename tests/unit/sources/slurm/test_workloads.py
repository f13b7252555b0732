"""Which workload a run belongs to: requeues stay together, recycled numbers do not, and once booked is for ever."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from gpuledger.sources.protocol import KnownRun
from gpuledger.sources.slurm import workloads
from gpuledger.sources.slurm.workloads import REQUEUE_S, RunIdentity, Workloads

S, DAY = 1_000_000_000, 86_400


def run(submitted_s: int, ended_s: int | None = None, **more: object) -> RunIdentity:
    return RunIdentity("alpha", "3", submitted_s, ended_s, **more)  # type: ignore[arg-type]


class Booked:
    """A ledger that knows some runs of job 3, and counts the questions."""

    def __init__(self, *runs: KnownRun) -> None:
        self.runs, self.asked = runs, list[set[str]]()

    def of(self, cluster: str, jobs: Collection[str]) -> Mapping[str, Sequence[KnownRun]]:
        assert cluster == "alpha"
        self.asked.append(set(jobs))
        return {"3": self.runs} if "3" in jobs and self.runs else {}


def test_a_workload_is_named_after_its_first_submission() -> None:
    assert Workloads().workload_of(run(S, S + 10)) == f"3-{S}"


@pytest.mark.parametrize("gap", [0, 1, -1, 600, REQUEUE_S])
def test_a_run_submitted_at_the_end_of_another_is_of_the_same_workload(gap: int) -> None:
    found = Workloads()
    assert found.workload_of(run(S, S + 10)) == found.workload_of(run(S + 10 + gap, S + 5000)) == f"3-{S}"


def test_a_run_that_is_told_before_the_one_before_it_is_of_the_same_workload_too() -> None:
    found = Workloads()
    later = found.workload_of(run(S + 10, S + 20))
    assert found.workload_of(run(S, S + 10)) == later
    assert found.workload_of(run(S + 20, S + 30)) == later


def test_a_chain_of_any_length_is_one_workload() -> None:
    found = Workloads()
    assert {found.workload_of(run(S + 10 * n, S + 10 * n + 10)) for n in range(5)} == {f"3-{S}"}


def test_a_number_that_comes_round_again_is_another_workload() -> None:
    found = Workloads()
    assert found.workload_of(run(S, S + 10)) == f"3-{S}"
    assert found.workload_of(run(S + 3000 * DAY, None)) == f"3-{S + 3000 * DAY}"
    assert found.workload_of(run(S + 10 + REQUEUE_S + 1, None)) == f"3-{S + 10 + REQUEUE_S + 1}"


def test_other_jobs_tasks_and_clusters_are_other_workloads() -> None:
    found = Workloads()
    first = found.workload_of(run(S, S + 10))
    for other in (run(S + 10)._replace(job="3_1"), run(S + 10)._replace(cluster="beta")):
        assert found.workload_of(other) != first


def test_a_restart_count_links_runs_however_long_the_job_was_held_between_them() -> None:
    found = Workloads()
    found.workload_of(run(S, S + 10))
    assert found.workload_of(run(S + 9 * DAY, restarts=1)) == f"3-{S}"


def test_a_number_that_was_used_long_ago_was_used_by_another_job() -> None:
    found = Workloads()
    found.workload_of(run(S, S + 10))
    later = S + 10 + workloads.HELD_S + 1
    assert found.workload_of(run(later, restarts=1)) == f"3-{later}"


def test_a_first_run_goes_on_from_nothing() -> None:
    found = Workloads()
    found.workload_of(run(S, S + 10))
    assert found.workload_of(run(S + 10, restarts=0)) == f"3-{S + 10}"


def test_an_end_that_is_not_known_links_nothing_by_itself() -> None:
    found = Workloads()
    found.workload_of(run(S, None))
    assert found.workload_of(run(S + 500, None)) == f"3-{S + 500}"


def test_a_resized_run_goes_on_from_the_one_before_it() -> None:
    found = Workloads()
    found.workload_of(run(S, None))
    assert found.workload_of(run(S + 500, None, is_resized=True)) == f"3-{S}"


def test_a_record_that_tells_the_first_submission_names_the_workload_after_it() -> None:
    assert Workloads().workload_of(run(S + 500, None, is_resized=True, first_s=S)) == f"3-{S}"


def test_a_sluid_links_runs_outright() -> None:
    found = Workloads()
    found.workload_of(run(S, None, lineage="s01"))
    assert found.workload_of(run(S + 40 * DAY, None, lineage="s01")) == f"3-{S}"
    assert found.workload_of(run(S + 80 * DAY, None, lineage="s02")) == f"3-{S + 80 * DAY}"


def test_a_run_that_was_booked_stays_where_it_was_booked() -> None:
    booked = Booked(KnownRun("3-777", S, None), KnownRun("3-777", S - 50, S))
    assert Workloads(booked).workload_of(run(S, S + 10)) == "3-777"


def test_a_run_goes_on_from_one_that_was_booked() -> None:
    assert Workloads(Booked(KnownRun("3-777", S, S + 10))).workload_of(run(S + 10)) == "3-777"
    assert Workloads(Booked(KnownRun("3-888", S + 10, None))).workload_of(run(S, S + 10)) == "3-888"


def test_the_end_of_a_booked_run_is_learnt_from_its_record() -> None:
    found = Workloads(Booked(KnownRun("3-777", S, None)))
    assert found.workload_of(run(S, S + 10)) == "3-777"
    assert found.workload_of(run(S + 10, None)) == "3-777"


def test_the_ledger_is_asked_once_for_many_jobs() -> None:
    booked = Booked()
    found = Workloads(booked)
    found.look_up({"alpha": ["3", "4", "5"]})
    found.look_up({"alpha": ["4"]})
    found.workload_of(run(S))
    found.workload_of(run(S)._replace(job="6"))
    assert booked.asked == [{"3", "4", "5"}, {"6"}]


def test_memory_is_bounded_and_the_ledger_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "JOBS_LIMIT", 2)
    booked = Booked(KnownRun("3-777", S, S + 10))
    found = Workloads(booked)
    for job in ("3", "4", "5", "3"):
        found.workload_of(run(S)._replace(job=job))
    assert [sorted(jobs) for jobs in booked.asked] == [["3"], ["4"], ["5"], ["3"]]
    assert len(found._runs) == 2
