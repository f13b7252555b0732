"""A job that was placed several times: a run for each, and a wait after all but the last."""

from gpuledger.events.workload import Ended, Requeued, Started
from gpuledger.sources.attempts import Attempt, attempt_facts
from gpuledger.sources.jobs import Job

JOB = Job(
    source="s", cluster="c", workload="w", account="c/a", user="u", gpus_milli=8000,
    submitted_s=5, started_s=None, ended_s=None, reason="done",
)  # fmt: skip
FIRST = Attempt(number=1, started_s=10, ended_s=20, gpus_milli=8000, hosts=["h"])
SECOND = Attempt(number=2, started_s=30, ended_s=40, gpus_milli=4000, hosts=[], estimated=True)


def test_attempts_are_runs() -> None:
    facts = attempt_facts(JOB, [FIRST, SECOND])
    assert [(event.id, event.at_s) for event, _ in facts] == [
        ("w/submitted", 5), ("w/1/started", 10), ("w/1/ended", 20), ("w/2/started", 30), ("w/2/ended", 40),
    ]  # fmt: skip
    named = {"cluster": "c", "workload": "w"}
    assert [event.data for event, _ in facts[1:]] == [
        Started(**named, run="1", attempt=1, gpus_milli=8000, hosts=["h"]),
        Requeued(**named, run="1", reason="requeued"),
        Started(**named, run="2", attempt=2, gpus_milli=4000, hosts=[]),
        Ended(**named, run="2", reason="done", estimated=True),
    ]


def test_a_job_that_goes_on_waits_after_its_last_attempt() -> None:
    facts = attempt_facts(JOB, [FIRST], is_over=False)
    assert isinstance(facts[-1][0].data, Requeued)


def test_an_attempt_without_an_end_has_none() -> None:
    open_end = Attempt(number=1, started_s=10, ended_s=None, gpus_milli=8000, hosts=[])
    assert [event.id for event, _ in attempt_facts(JOB, [open_end])] == ["w/submitted", "w/1/started"]


def test_a_job_that_nobody_knows_the_submission_of_says_who_pays_with_each_start() -> None:
    unknown = Job(
        source="s", cluster="c", workload="w", account="c/a", user="u", gpus_milli=8000,
        submitted_s=None, started_s=None, ended_s=None, reason="done",
    )  # fmt: skip
    started, _ = (event.data for event, _ in attempt_facts(unknown, [FIRST]))
    assert isinstance(started, Started)
    assert (started.account, started.user) == ("c/a", "u")
