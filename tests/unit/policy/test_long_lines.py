"""A queue that is not merged says of every place what the merged one says."""

from bisect import bisect_left, bisect_right
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.policy.worlds import build, queues, trees, waiting
from tests.unit.policy.forests import forest, pending

from gpuledger.policy import lines
from gpuledger.policy.contenders import Contender, allocated
from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.fair_share import entries, entry_of
from gpuledger.policy.lines import ASK, Line, line_up
from gpuledger.policy.long_lines import LongLine, before, merge_where_short, up_to
from gpuledger.policy.piles import Pile

CONFIG = PolicyConfig()


def both(world: dict[str, Any], data: st.DataObject) -> tuple[Contender, Line, Line]:
    """Return a tree of contenders, and its queue: merged, and not."""
    tree = build(world, 100_000)
    queue = data.draw(queues([leaf.path for leaf in tree.leaves()]))
    work = entries(tree, waiting(queue), CONFIG)["allocated"]
    top = allocated(tree, CONFIG)

    def long_line(leaf: Contender) -> Line:
        pile = Pile(work.get(leaf.path, ()))
        return Line(leaf, pile, sums=pile) if pile else Line(leaf, ())

    merged = line_up(top, lambda leaf: Line(leaf, work.get(leaf.path, ())))
    return top, merged, line_up(top, long_line, merge_where_short)


def compare(top: Contender, merged: Line, long: Line) -> None:
    """Compare two lines of an account at every place, and those below them."""
    count = len(merged.entries)
    assert (len(long.entries), list(long.used), list(long.running)) == (
        count, list(merged.used), list(merged.running),
    )  # fmt: skip
    assert (long.lifted, set(long.kinds), long.models) == (merged.lifted, set(merged.kinds), merged.models)
    if top.children:
        ranks = merged.ranks(0, top), long.ranks(0, top)
        for rank in ranks[0]:
            assert before(ranks[1], rank) == bisect_left(ranks[0], rank)
            assert up_to(ranks[1], rank) == bisect_right(ranks[0], rank)
        assert list(ranks[1]) == list(ranks[0])
    for place in range(count):
        assert long.entries[place] == merged.entries[place]
        assert long.standing(place) == merged.standing(place)
        assert [one.contender.path for one, _ in long.spots(place)] == [
            one.contender.path for one, _ in merged.spots(place)
        ]
        for asks in [[ask] for ask in merged.kinds] + [list(merged.kinds)]:
            after = (at for at in range(place, count) if merged.entries[at][ASK] in asks)
            assert long.first_of(asks, place) == merged.first_of(asks, place) == next(after, None)
        if merged.below:
            assert long.place_of(long.merged[place]) == merged.place_of(merged.merged[place]) == place
    assert long.first_of(merged.kinds, count) is None
    for place, below in merged.below.items():
        compare(top.children[place], below, long.below[place])


@settings(max_examples=100, deadline=None)
@given(trees(), st.data())
def test_a_long_line_says_what_the_merged_one_says(world: dict[str, Any], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LONG", 0)
        compare(*both(world, data))


@settings(max_examples=30, deadline=None)
@given(trees(), st.data())
def test_where_it_is_asked_first_makes_no_difference(world: dict[str, Any], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "LONG", 0)
        top, merged, long = both(world, data)
        for place in data.draw(st.permutations(range(len(merged.entries)))):
            assert long.ranks(0, top)[place] == merged.ranks(0, top)[place]
            assert long.leaf(place)[1] == merged.leaf(place)[1]


def test_a_short_line_is_merged() -> None:
    top = allocated(forest({"a": {}, "b": {}}), CONFIG)
    for count, kind in ((lines.LONG // 2, Line), (lines.LONG, LongLine)):
        work = [pending(f"{path}{n}", path) for path in ("a", "b") for n in range(count)]
        piles = {
            path: Pile(sorted(entry_of(one, "allocated", CONFIG) for one in work if one.account == path))
            for path in ("a", "b")
        }
        below = {
            n: Line(leaf, piles[leaf.path], sums=piles[leaf.path]) for n, leaf in enumerate(top.children)
        }
        assert type(merge_where_short(top, below)) is kind
