"""A line finds who a search would find."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.simulator.worlds.lines import Line

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.integers(1, 5), st.integers(0, 9)),
        st.tuples(st.just("leave"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("first"), st.integers(0, 70), st.none() | st.integers(0, 9)),
    ),
    max_size=60,
)


@given(STEPS)
def test_as_a_search_from_the_first_place_on(steps: list[tuple[str, int, int | None]]) -> None:
    line, there, last = Line(), {}, 0
    for step, number, length in steps:
        if step == "join" and length is not None:
            last += number
            line.join(last, f"j{last}", length)
            there[last] = length
        elif step == "leave" and there:
            place = sorted(there)[number % len(there)]
            line.leave(place)
            del there[place]
        else:
            found = next(
                (p for p in sorted(there) if p >= number and (length is None or there[p] <= length)), None
            )
            assert line.first(number, length) == (None if found is None else (found, f"j{found}"))
        assert bool(line) == bool(there)


def test_who_left_is_forgotten() -> None:
    """A thousand pass through; never more than one waits, so the line stays as short as that."""
    line = Line()
    for place in range(1, 1001):
        line.join(place, f"j{place}", 5)
        if place > 1:
            line.leave(place - 1)
    assert line.first() == (1000, "j1000")
    assert len(line._places) <= 4
