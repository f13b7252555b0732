"""The queue in blocks says of every workload what the merged queue says."""

from collections.abc import Iterable

from tests.unit.policy.forests import forest, pending

from gpuledger.policy.blocks import Blocks, cut
from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.fair_share import entry_of, lines
from gpuledger.policy.lines import Line
from gpuledger.policy.tree import Tree

CONFIG = PolicyConfig()
DEEP = {"org/p/x": {"used": 3}, "org/p/y": {"used": 1}, "org/q/x": {"share": 2}, "org/r": {}}
FLAT = {"a": {"used": 9}, "b": {}}
QUEUE = [
    pending(f"{path}{n}", path, gpus=1 + n, priority=n % 2)
    for path in ("org/p/x", "org/p/y", "org/q/x", "org/r")
    for n in range(5)
]


def queue(tree: Tree, names: set[str] | None = None) -> Line:
    waiting = [w for w in QUEUE if w.account in tree.nodes and (names is None or w.workload in names)]
    return lines(tree, waiting, CONFIG)["allocated"]


def named(levels: list[Iterable[Line]]) -> list[set[str]]:
    """Who stands beside others, level by level."""
    found = [{line.contender.path for line in level} for level in levels]
    return [level if len(level) > 1 else set() for level in found]


def same(tree: Tree, blocks: Blocks, line: Line) -> None:
    assert len(blocks) == len(line.entries)
    for place, entry in enumerate(line.entries):
        spot = blocks.find(tree.leaf_path(entry[6].account), entry)
        assert spot is not None
        assert blocks.entry(spot) is entry or blocks.entry(spot) == entry
        at = blocks.place_of(spot)
        assert blocks.rank_of(at) == line.rank_of(place) == place
        assert [above.standing(n) for above, n in blocks.spots(at)] == [
            above.standing(n) for above, n in line.spots(place)
        ]
        assert named(blocks.beside(at)) == named(line.beside(place))
        assert blocks.leaf(at)[0].contender.path == line.leaf(place)[0].contender.path


def test_places_and_standings_are_those_of_the_merged_queue() -> None:
    tree = forest(DEEP, running={"org/p/x": 3})
    same(tree, cut(queue(tree)), queue(tree))


def test_one_workload_more_is_where_sorting_everything_anew_puts_it() -> None:
    tree = forest(DEEP)
    for late in QUEUE:
        others = {w.workload for w in QUEUE} - {late.workload}
        before = cut(queue(tree, others))
        after = before.with_entry(tree.leaf_path(late.account), entry_of(late, "allocated", CONFIG))
        same(tree, after, queue(tree))
        same(tree, before, queue(tree, others))


def test_the_first_work_of_an_account_and_of_a_block_finds_its_place() -> None:
    tree = forest(DEEP)
    first, second = QUEUE[0], QUEUE[12]
    blocks = cut(queue(tree, set()))
    assert (len(blocks), blocks.find("org/p/x", entry_of(first, "allocated", CONFIG))) == (0, None)
    for late in (first, second):
        blocks = blocks.with_entry(late.account, entry_of(late, "allocated", CONFIG))
    same(tree, blocks, queue(tree, {first.workload, second.workload}))
    assert blocks.leaf_line("org/r") is None


def test_a_tree_of_roots_and_a_single_account_are_blocks_too() -> None:
    for tree in (forest(FLAT), forest({"a": {}})):
        waiting = [pending(f"w{n}", path, gpus=n) for path in tree.nodes for n in range(1, 4)]
        line = lines(tree, waiting, CONFIG)["allocated"]
        same(tree, cut(line), line)
