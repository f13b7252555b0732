"""The keys of a scenario file: shorter ways to write values, and what is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from gpuledger.simulator.scenario_keys import IdleKeys, LengthKeys, ScenarioKeys, WorkKeys

ONE = {"a": {"gpus": 1, "work": 1}}


def work(**more: Any) -> WorkKeys:  # noqa: ANN401 - whatever stands in a file
    return WorkKeys.model_validate({"gpus": 1, "work": 60, **more})


def test_a_number_alone_is_always_that_number_and_a_list_has_no_favourites() -> None:
    assert work(gpus=8).gpus == {8: 1}
    assert work(gpus=[1, 2]).gpus == {1: 1, 2: 1}
    assert work(gpus={1: 3, 8: 1}).gpus == {1: 3, 8: 1}


@pytest.mark.parametrize("sizes", [[{1: 2}], [[1, 2]], [1, "x"], [1.5]])
def test_a_list_of_what_is_no_number_is_refused(sizes: list[object]) -> None:
    with pytest.raises(ValidationError, match="gpus"):
        work(gpus=sizes)


def test_a_length_alone_is_a_constant() -> None:
    assert work(work=600).work == LengthKeys(median_s=600)
    assert work(idle=600).idle == IdleKeys(median_s=600)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "demand\n  Field required"),
        ({"demand": {"trace": "philly"}, "cluster": {"hosts": True}}, "no numbers"),
        ({"demand": {"trace": "philly"}, "worlds": {"old": {"answer_s": True}}}, "no numbers"),
        ({"demand": {}}, "nobody asks for anything; write closed_loop, trace or jobs"),
        ({"demand": {"path": "x", "jobs": [{"job": "a", "account": "a", "work_s": 1}]}}, "belong to a trace"),
        ({"demand": {"trace": "philly"}, "groups": {"medium_gpus": 8, "large_gpus": 8}}, "not below large_gpus"),
        ({"demand": {"trace": "philly"}, "policy": {"windows_s": 3}}, "did you mean window_s"),
        ({"demand": {"trace": "philly"}, "policy": {"grace_s": True}}, "grace_s is True"),
        ({"demand": {"trace": "philly"}, "worlds": {"odd": {}}}, "'old', 'fifo', 'multifactor' or 'gpuledger'"),
        ({"demand": {"trace": "philly"}, "accounts": {"a": {"demand": 1, "stock_gpus": 1}}}, "say the same"),
        ({"demand": {"trace": "philly"}, "days": 0}, "greater than or equal to 1"),
        ({"demand": {"closed_loop": {"mix": {}}}}, "at least 1 item"),
        ({"demand": {"closed_loop": {"mix": {"a": {"gpus": {}, "work": 1}}}}}, "at least 1 item"),
        (
            {"demand": {"closed_loop": {"mix": {"a": {"gpus": 1, "work": {"median_s": 9, "most_s": 5}}}}}},
            "median_s is not between least_s and most_s",
        ),
        (
            {"demand": {"closed_loop": {"working_hours": {"from": 9, "to": 9}, "mix": ONE}}},
            "from is not before to",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScenarioKeys.model_validate(keys)
