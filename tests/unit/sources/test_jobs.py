"""A job becomes its facts as far as they happened; foreign teams become accounts."""

from typing import Any

import pytest

from gpuledger.events.workload import Ended, Started
from gpuledger.kernel.accounts import clash_suffix
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import Job, Teams


def job(**changes: Any) -> Job:  # noqa: ANN401 - any field
    fields: dict[str, Any] = {
        "source": "trace/x/c", "cluster": "c", "workload": "7", "account": "c/a", "user": "-",
        "gpus_milli": 500, "submitted_s": 10, "started_s": 20, "ended_s": 30, "reason": "done",
    }  # fmt: skip
    return Job(**{**fields, **changes})


def test_a_whole_job_is_submitted_started_and_ended() -> None:
    facts = [event for event, _ in job().facts()]
    assert [(fact.id, fact.at_s) for fact in facts] == [
        ("7/submitted", 10),
        ("7/started", 20),
        ("7/ended", 30),
    ]
    assert {fact.source for fact in facts} == {"trace/x/c"}
    assert facts[1].data == Started(cluster="c", workload="7", run="1", attempt=1, gpus_milli=500, hosts=[])
    assert facts[2].data == Ended(cluster="c", workload="7", run="1", reason="done")


def test_a_job_that_still_runs_has_no_end() -> None:
    assert [event.name for event, _ in job(ended_s=None).facts()] == [
        "workload.submitted",
        "workload.started",
    ]


def test_a_job_that_never_started_ends_without_a_run() -> None:
    _, (ended, _) = job(started_s=None).facts()
    assert ended.data == Ended(cluster="c", workload="7", reason="done")


def test_a_job_that_waits_is_only_submitted() -> None:
    ((submitted, _),) = job(started_s=None, ended_s=None).facts()
    assert submitted.name == "workload.submitted"


def test_a_team_keeps_its_account_and_is_odd_only_once() -> None:
    teams = Teams()
    assert teams.account("team", "c", "Vision") == ("c/vision", [])
    path, odd = teams.account("team", "c", "VISION")
    assert path == "c/vision" + clash_suffix("VISION")
    assert [code for code, _ in odd] == ["case-clash"]
    assert teams.account("team", "c", "VISION") == (path, [])
    assert teams.account("team", "c", "Vision") == ("c/vision", [])


def test_the_same_team_below_another_root_does_not_clash() -> None:
    teams = Teams()
    teams.account("team", "c", "Vision")
    assert teams.account("team", "d", "vision") == ("d/vision", [])


def test_what_a_team_leaves_for_a_retry_decides_the_same_account() -> None:
    teams = Teams()
    teams.account("team", "c", "Vision")
    again = Teams(teams.remember("c", "VISION"))
    assert again.account("team", "c", "VISION")[0] == "c/vision" + clash_suffix("VISION")
    assert teams.remember("c", "never-seen") == {}
    assert teams.remember("c", "") == {}


@pytest.mark.parametrize("kept", ["c", ["c", "vision"], ["c", "vision", 1]])
def test_a_memory_of_another_shape_is_not_taken(kept: object) -> None:
    assert Teams({"team": kept}).account("team", "c", "VISION") == ("c/vision", [])


@pytest.mark.parametrize(
    ("team", "code"), [("", "missing-value"), ("é" * 65, "bad-name"), ("a\tb", "bad-name")]
)
def test_a_team_without_a_usable_name_is_refused(team: str, code: str) -> None:
    with pytest.raises(BadRecord, match=r"^team: ") as caught:
        Teams().account("team", "c", team)
    assert caught.value.code == code


def test_a_job_of_unknown_submission_says_who_pays_with_its_start() -> None:
    (started, _), _ = job(submitted_s=None, user="u").facts()
    assert started.data == Started(
        cluster="c", workload="7", run="1", attempt=1, gpus_milli=500, hosts=[], account="c/a", user="u"
    )


def test_an_end_that_is_only_an_estimate_says_so() -> None:
    assert job(estimated=True, exit="1").facts()[-1][0].data == Ended(
        cluster="c", workload="7", run="1", reason="done", exit="1", estimated=True
    )


def test_a_run_of_another_name_has_facts_of_its_own() -> None:
    ids = [event.id for event, _ in job(run="r9", kind="debug").facts()]
    assert ids == ["7/submitted", "7/r9/started", "7/r9/ended"]
