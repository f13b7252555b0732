"""How much the past weighs: a window, a half-life, and the tables that compare them."""

import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.policy.decay import decayed
from gpuledger.policy.memory import BUCKET_S, Memory, Step, steps_of

HOUR = 3600
DAY = 24 * HOUR
WEEK = 7 * DAY
WINDOW = PolicyConfig()
HALF_LIFE = PolicyConfig(mode="half-life")
NOW = 20_000 * DAY


def remembered(config: PolicyConfig, from_s: int, to_s: int, at_s: int, gpus: int = 100) -> Decimal:
    """Return GPU-hours that a burst of so many GPUs weighs at an instant."""
    memory = Memory.of(config, at_s)
    return Decimal(gpus * memory.weight(from_s, to_s)) / memory.unit / HOUR


@pytest.mark.parametrize(
    ("days", "window", "half_life"),
    [
        ("0", "2400", "2285.0"),
        ("1", "2400", "2069.6"),
        ("3", "2400", "1697.7"),
        ("6", "2400", "1261.4"),
        ("6.99", "24", "1143.6"),
        ("7.01", "0", "1141.4"),
        ("14", "0", "571.3"),
        ("21", "0", "285.6"),
    ],
)
def test_a_burst_of_a_day_is_forgotten_at_once_or_by_halves(days: str, window: str, half_life: str) -> None:
    """Use of 100 GPUs for 24 h, so many days after it ended: window and half-life of a week (B1, item 4)."""
    at_s = NOW + int(Decimal(days) * DAY)
    assert remembered(WINDOW, NOW - DAY, NOW, at_s) == Decimal(window)
    assert round(remembered(HALF_LIFE, NOW - DAY, NOW, at_s), 1) == Decimal(half_life)


@pytest.mark.parametrize(("half_lives", "expected"), [(1, "1.000"), (2, "1.500"), (3, "1.750")])
def test_steady_use_approaches_its_level_by_halves(half_lives: int, expected: str) -> None:
    """Steady 2 CPU with a half-life of 168 h: 1.000, 1.500, 1.750 after one, two, three (Kueue Q16)."""
    memory = Memory.of(HALF_LIFE, NOW)
    used = 2 * memory.weight(NOW - half_lives * WEEK, NOW)
    assert abs(Decimal(used) / memory.weight(0, NOW) - Decimal(expected)) < Decimal("0.00001")


def test_a_new_users_priority_after_a_day_is_htcondors() -> None:
    """100 cores for 24 h from a priority of 0.5, half-life a day: 50.25 (HTCondor H5, H9)."""
    config = PolicyConfig(mode="half-life", half_life_s=DAY)
    memory = Memory.of(config, NOW)
    level = Decimal(100 * memory.weight(NOW - DAY, NOW)) / memory.weight(0, NOW)
    start = Decimal(decayed(DAY, DAY)) / 2 / memory.unit
    assert abs(level + start - Decimal("50.25")) < Decimal("0.0005")


@given(
    st.sampled_from([WINDOW, HALF_LIFE]),
    st.lists(st.integers(0, 3 * WEEK), min_size=2, max_size=8),
    st.data(),
)
def test_it_does_not_matter_in_which_steps_use_is_sampled(
    config: PolicyConfig, ages: list[int], data: st.DataObject
) -> None:
    """One step of 24 h or steps of 1 + 5 + 7 + 11 h: the same to the last unit (HTCondor H9), from any bucket on."""
    at_s = NOW + data.draw(st.integers(0, 2 * BUCKET_S))
    memory, edges = Memory.of(config, at_s), sorted(at_s - age for age in ages)
    parts = sum(memory.weight(a, b) for a, b in itertools.pairwise(edges))
    assert parts == memory.weight(edges[0], edges[-1])
    day = [at_s - HOUR * hours for hours in (24, 23, 18, 11, 0)]
    assert memory.weight(day[0], day[4]) == sum(memory.weight(a, b) for a, b in itertools.pairwise(day))


@given(st.integers(0, 2 * BUCKET_S), st.integers(-100, 40 * WEEK), st.integers(0, WEEK))
def test_seconds_weigh_less_the_older_they_are_and_nothing_when_forgotten(
    now: int, age_s: int, length_s: int
) -> None:
    memory = Memory.of(HALF_LIFE, NOW + now)
    begin = memory.end_s - age_s
    weight = memory.weight(begin, begin + length_s)
    assert (
        0 <= weight <= memory.weight(begin + BUCKET_S, begin + length_s + BUCKET_S)
        or age_s < BUCKET_S + length_s
    )
    assert memory.weight(begin - 40 * WEEK, memory.start_s) == 0
    assert memory.weight(memory.end_s, memory.end_s + 100) == 0


@given(
    st.sampled_from([WINDOW, HALF_LIFE]),
    st.lists(
        st.tuples(st.integers(0, 30 * DAY), st.integers(0, 9)), max_size=6, unique_by=lambda step: step[0]
    ),
    st.integers(0, 30 * DAY),
    st.integers(0, 10 * DAY),
)
def test_amounts_that_change_are_summed_piece_by_piece(
    config: PolicyConfig, changes: list[tuple[int, int]], from_s: int, length_s: int
) -> None:
    steps = [Step(NOW - 25 * DAY + at_s, amount) for at_s, amount in sorted(changes)]
    memory = Memory.of(config, NOW)
    begin, end = NOW - 25 * DAY + from_s, NOW - 25 * DAY + from_s + length_s
    edges = sorted({begin, end, *(step.from_s for step in steps if begin < step.from_s < end)})

    def amount(at_s: int) -> int:
        return next((step.amount for step in reversed(steps) if step.from_s <= at_s), 0)

    expected = sum(amount(a) * memory.weight(a, b) for a, b in itertools.pairwise(edges))
    assert memory.of_steps(steps, begin, end) == expected


def test_changes_of_one_instant_are_one_step() -> None:
    assert steps_of([(5, 3), (2, 1), (5, -1), (9, -3)]) == [Step(2, 1), Step(5, 3), Step(9, 0)]


def test_amounts_are_rounded_half_up() -> None:
    memory = Memory.of(HALF_LIFE, NOW)
    assert [memory.rounded(units) for units in (0, memory.unit // 2 - 1, memory.unit // 2, memory.unit)] == [
        0,
        0,
        1,
        1,
    ]
