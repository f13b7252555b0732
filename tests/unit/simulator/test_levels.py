from hypothesis import given
from hypothesis import strategies as st

from gpuledger.simulator.levels import Level


def test_what_came_before_the_window_stands_and_does_not_count() -> None:
    level = Level(100)
    level.move(50, 3)
    level.move(110, -1)
    assert level.area(120) == 3 * 10 + 2 * 10


def test_an_integral_that_is_taken_begins_anew() -> None:
    level = Level(0, 5)
    assert level.take(10) == 50
    assert level.take(10) == 0
    level.move(12, 1)
    assert level.take(13) == 5 * 2 + 6


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(-3, 3)), max_size=12).map(sorted), st.integers(0, 40)
)
def test_it_is_the_sum_over_the_seconds(moves: list[tuple[int, int]], from_s: int) -> None:
    level = Level(from_s)
    for at_s, change in moves:
        level.move(at_s, change)
    seconds = (sum(change for at_s, change in moves if at_s <= second) for second in range(from_s, 40))
    assert level.area(40) == sum(seconds)
