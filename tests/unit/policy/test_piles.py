"""Work that comes and goes: what is said of it is what one says of a list of the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.forests import AT_S, pending

from gpuledger.policy import piles
from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.fair_share import entry_of
from gpuledger.policy.lines import ASK, ELIGIBLE, GPU_MS, GPUS_MILLI, Entry
from gpuledger.policy.piles import Pile

CONFIG = PolicyConfig()


def entry(name: int, gpus: int, hours: int, eligible_s: int, priority: int = 0) -> Entry:
    workload = pending(
        f"w{name:03}",
        "a",
        gpus=gpus,
        hours=hours,
        priority=priority,
        submitted_at_s=name % 7,
        eligible_at_s=AT_S + eligible_s,
    )
    return entry_of(workload, "allocated", CONFIG)


work = st.builds(
    entry,
    st.integers(0, 99),
    st.sampled_from([1, 8]),
    st.integers(1, 3),
    st.integers(-60, 0),
    st.integers(0, 1),
)
batches = st.lists(st.lists(work, unique_by=lambda one: one[2], max_size=12), max_size=6)


def check(pile: Pile, expected: list[Entry]) -> None:
    """Compare everything that a pile says with a list."""
    assert (list(pile), pile.entries, len(pile), pile[1:3]) == (
        expected,
        expected,
        len(expected),
        expected[1:3],
    )
    assert set(pile.kinds) == {one[ASK] for one in expected}
    assert pile.asks == [one[ASK] for one in expected]
    for place in range(len(expected) + 1):
        held, milli = (sum(one[field] for one in expected[:place]) for field in (GPU_MS, GPUS_MILLI))
        assert (pile.held_before(place), pile.milli_before(place)) == (held, milli)
        assert (pile.held_gpu_ms[place], pile.gpus_milli[place]) == (held, milli)
        for asks in ([ask] for ask in pile.kinds):
            after = (at for at, one in enumerate(expected) if at >= place and one[ASK] in asks)
            assert pile.first_of(asks, place) == next(after, None)
    for place, one in enumerate(expected):
        assert (pile[place], pile.place_of(one)) == (one, place)
        oldest_s = min(other[ELIGIBLE] for other in expected[place:])
        assert (pile.oldest_from(place), pile.oldest_s[place]) == (oldest_s, oldest_s)
        assert pile.first_of(pile.kinds, place) == place


@given(batches, st.data())
def test_a_pile_says_what_a_list_says(drawn: list[list[Entry]], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piles, "CHUNK", 2)
        pile, expected = Pile(), list[Entry]()
        for come in drawn:
            gone = data.draw(st.lists(st.sampled_from(expected), unique=True)) if expected else []
            for one in gone:
                pile.drop(one)
                expected.remove(one)
            names = {one[2] for one in expected}
            joining = [one for one in come if one[2] not in names]
            pile.add(joining)
            expected = sorted([*expected, *joining])
            check(pile, expected)
            check(Pile(expected), expected)


def test_there_is_no_place_behind_the_last() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piles, "CHUNK", 2)
        pile = Pile([entry(n, 1, 1, 0) for n in (0, 1, 2, 3, 4)])
        with pytest.raises(IndexError):
            pile[5]
        assert pile.first_of(pile.kinds, 5) is None
