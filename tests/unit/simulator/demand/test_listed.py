"""Jobs that somebody wrote down, and several demands at once."""

from tests.simulating import T0, job

from gpuledger.simulator.demand.listed import Given, Listed, Repeated, Together
from gpuledger.simulator.jobs import Job


class Asking:
    """Asks again, once, for each of its own jobs."""

    def __init__(self, own: Job) -> None:
        self.own = own

    def first(self) -> list[Job]:
        return [self.own]

    def after(self, job: Job, at_s: int) -> list[Job]:
        return [self.own] if job.job == self.own.job else []


def when(jobs: Listed | Together) -> list[tuple[str, int]]:
    return [(found.job, found.submitted_s - T0) for found in jobs.first()]


def test_a_job_comes_again_and_again_and_all_in_order() -> None:
    listed = Listed(
        [
            Repeated(job=job("a", at_s=100), count=3, every_s=50),
            Repeated(job=job("b", at_s=120)),
            Repeated(job=job("c", at_s=100), count=2),
        ]
    )
    assert when(listed) == [
        ("a-1", 100), ("c-1", 100), ("c-2", 100), ("b-1", 120), ("a-2", 150), ("a-3", 200),
    ]  # fmt: skip


def test_what_is_listed_is_not_asked_for_again() -> None:
    listed = Listed([Repeated(job=job("a"))])
    assert list(listed.after(next(iter(listed.first())), T0)) == []


def test_jobs_that_are_given_are_submitted_as_they_stand() -> None:
    jobs = [job("b", at_s=10), job("a", at_s=20)]
    assert Given(jobs).first() == jobs
    assert list(Given(jobs).after(jobs[0], T0)) == []


def test_demands_together_are_in_order_and_each_reacts_to_its_own_jobs() -> None:
    both = Together(
        [Asking(job("x", at_s=30)), Listed([Repeated(job=job("a", at_s=20), count=2, every_s=20)])]
    )
    assert when(both) == [("a-1", 20), ("x", 30), ("a-2", 40)]
    assert [found.job for found in both.after(job("x"), T0)] == ["x"]
    assert list(both.after(job("a-1"), T0)) == []
