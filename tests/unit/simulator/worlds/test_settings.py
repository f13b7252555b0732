"""Settings of worlds are known, or refused."""

import pytest
from tests.simulating import scenario

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.worlds.registry import make_world
from gpuledger.simulator.worlds.settings import settings_of

DEFAULTS = {"long_wait_s": 5, "answer_s": 7}


def test_what_is_left_out_is_as_documented() -> None:
    given = scenario(worlds={"old": {"answer_s": 9}, "other": {"x": 1}})
    assert settings_of(given, "old", DEFAULTS) == {"long_wait_s": 5, "answer_s": 9}
    assert settings_of(scenario(), "old", DEFAULTS) == DEFAULTS


def test_what_is_not_known_is_refused_with_what_may_be_meant() -> None:
    with pytest.raises(Refused, match="the world old has no setting 'anser_s'") as error:
        settings_of(scenario(worlds={"old": {"anser_s": 9}}), "old", DEFAULTS)
    assert error.value.hint == "did you mean answer_s?"
    with pytest.raises(Refused) as error:
        settings_of(scenario(worlds={"old": {"zzz": 9}}), "old", DEFAULTS)
    assert error.value.hint == "there are long_wait_s, answer_s"


def test_a_world_without_settings_takes_none() -> None:
    with pytest.raises(Refused, match="the world fifo has no setting 'backfill_s'") as error:
        make_world("fifo", scenario(worlds={"fifo": {"backfill_s": 9}}), 1)
    assert error.value.hint == "it has none"


def test_nothing_is_below_0() -> None:
    with pytest.raises(Refused, match="setting 'answer_s' of the world old is -1"):
        settings_of(scenario(worlds={"old": {"answer_s": -1}}), "old", DEFAULTS)
