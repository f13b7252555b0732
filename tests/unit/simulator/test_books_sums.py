"""Sums that are kept up to date say what sums made anew say."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.policy.memory import Memory, steps_of
from gpuledger.policy.state import PolicyConfig
from gpuledger.simulator.books_sums import Credits, Fading, Holds, Past, Window, past_of

HOUR_S = 3_600
WINDOW = PolicyConfig(window_s=HOUR_S)
FADING = PolicyConfig(mode="half-life", half_life_s=6 * HOUR_S)


class Step(NamedTuple):
    """After so long an amount changes, and somebody may look."""

    after_s: int
    by: int
    looks: bool


steps = st.lists(
    st.builds(Step, st.sampled_from([0, 1, 7, 450, 900, 1_800, 5_000, 86_400]), st.integers(0, 8_000), st.booleans()),
    max_size=30,
)  # fmt: skip


@pytest.mark.parametrize("config", [WINDOW, FADING], ids=["window", "half-life"])
def test_the_config_says_how_the_past_is_remembered(config: PolicyConfig) -> None:
    assert past_of(config) is (Window if config is WINDOW else Fading)


@given(steps)
def test_what_is_in_the_window_weighs_its_seconds(story: list[Step]) -> None:
    look(story, Window(), lambda at_s: Memory.of(WINDOW, at_s))


@given(steps)
def test_what_fades_weighs_what_the_memory_says(story: list[Step]) -> None:
    look(story, Fading(), lambda at_s: Memory.of(FADING, at_s))


def look(story: list[Step], past: Past, memory_at: Callable[[int], Memory]) -> None:
    """Compare every look with the weight of all changes so far; every second change goes back to nothing."""
    at_s, amount, changes = 1_800_000_123, 0, list[tuple[int, int]]()
    for number, step in enumerate(story):
        at_s += step.after_s
        by = -amount if number % 2 else step.by
        amount += by
        past.change(at_s, by)
        changes.append((at_s, by))
        if step.looks:
            memory = memory_at(at_s)
            assert past.units(memory) == memory.of_steps(steps_of(changes), memory.start_s, memory.end_s)
    later = memory_at(at_s + 2_000)
    assert past.units(later) == later.of_steps(steps_of(changes), later.start_s, later.end_s)


def test_credits_count_as_far_as_they_are_remembered() -> None:
    credits_ = Credits()
    credits_.give("a", 8_000, 100, 400)
    credits_.give("b", 1_000, 300, 300)
    credits_.give("a", 2_000, 3_000, 3_600)
    assert credits_.units(Memory.of(WINDOW, 3_600)) == {"a": 8_000 * 300 + 2_000 * 600}
    assert credits_.units(Memory.of(WINDOW, 3_600 + 250)) == {"a": 8_000 * 150 + 2_000 * 600}
    assert credits_.units(Memory.of(WINDOW, 3_600 + 400)) == {"a": 2_000 * 600}
    assert credits_.units(Memory.of(WINDOW, 9_000)) == {}


def test_holds_drain_and_what_is_left_is_released() -> None:
    holds = Holds()
    holds.open("one", "a", 2_000, 100)
    holds.open("two", "a", 1_000, 50)
    holds.open("three", "b", 500, 80)
    assert holds.at(20) == {"a": 2_000 * 80 + 1_000 * 30, "b": 500 * 60}
    holds.release("three")
    assert holds.at(50) == {"a": 2_000 * 50}
    holds.release("one")
    holds.open("one", "a", 2_000, 120)
    assert holds.at(100) == {"a": 2_000 * 20}
    assert holds.at(120) == {}
    holds.release("one")
