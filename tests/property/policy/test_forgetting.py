"""What a window forgets, against a count of every second."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.policy.forgetting import Stretch, bursts, forgotten_by_s

stretches = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 12), st.sampled_from([250, 1000, 3000])).map(
        lambda drawn: Stretch(drawn[0], drawn[0] + drawn[1], drawn[2])
    ),
    max_size=6,
)
windows = st.integers(50, 90)


def left_at(used: list[Stretch], window_s: int, at_s: int) -> int:
    """What a window that ends at the instant still holds, second by second."""
    seconds = range(at_s - window_s, at_s)
    return sum(milli for second in seconds for a, b, milli in used if a <= second < b)


@given(stretches, windows, st.integers(1, 60_000))
def test_an_amount_is_forgotten_at_the_first_instant_of_which_that_is_true(
    used: list[Stretch], window_s: int, gpu_ms: int
) -> None:
    whole = sum((b - a) * milli for a, b, milli in used)
    at_s = forgotten_by_s(used, window_s, gpu_ms)
    if at_s is None:
        assert whole < gpu_ms
        return
    assert whole - left_at(used, window_s, at_s) >= gpu_ms
    assert whole - left_at(used, window_s, at_s - 1) < gpu_ms


@given(stretches, windows)
def test_bursts_hold_everything_and_are_gone_when_they_say(used: list[Stretch], window_s: int) -> None:
    found = bursts(used, window_s)
    assert sum(burst.gpu_ms for burst in found) == sum((b - a) * milli for a, b, milli in used)
    for before, after in pairwise(found):
        assert before.to_s < after.from_s
        assert left_at(used, window_s, before.forgotten_by_s) == sum(
            b.gpu_ms for b in found if b.from_s >= after.from_s
        )
    if found:
        assert left_at(used, window_s, found[-1].forgotten_by_s) == 0
        whole = sum(burst.gpu_ms for burst in found)
        assert left_at(used, window_s, found[0].forgotten_from_s) == whole
