"""Refusals of Slurm told from what may be otherwise at the next look."""

import pytest

from gpuledger.enforce.slurm_errors import NOBODY_ANSWERS, PASSING, may_pass


@pytest.mark.parametrize("sentence", [*PASSING.values(), *NOBODY_ANSWERS])
def test_sentences_of_the_table_may_pass_wherever_they_stand(sentence: str) -> None:
    assert may_pass(f"slurm_update error: {sentence}")
    assert may_pass(f"{sentence.upper()} for job 3\n")


@pytest.mark.parametrize("said", ["", " \n"])
def test_who_says_nothing_may_say_something_else_next_time(said: str) -> None:
    assert may_pass(said)


@pytest.mark.parametrize(
    "said",
    [
        "slurm_update error: Access/permission denied",
        "Requested operation is presently disabled for job 3",
        "slurm_update error: Invalid node name specified",
        "slurm_update error: Invalid account or account/partition combination specified",
        " Unknown account contact", " Nothing modified: timed-out-team", " Bad format of connection=",
        "sacctmgr: error: no account communication on standby",
    ],
)  # fmt: skip
def test_all_else_is_a_refusal_whatever_names_it_holds(said: str) -> None:
    assert not may_pass(said)
