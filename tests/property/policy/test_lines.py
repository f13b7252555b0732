"""The queue by sorting, against one that picks the best head again and again by cross-multiplication."""

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.policy.worlds import build, queues, trees, waiting

from gpuledger.policy.contenders import Contender, allocated
from gpuledger.policy.cycle import PolicyConfig
from gpuledger.policy.fair_share import lines
from gpuledger.policy.lines import ELIGIBLE, GPU_MS, GPUS_MILLI, WORKLOAD, Entry, Line

CONFIG = PolicyConfig()
SUPPLY_MILLI = 100_000


def picked(top: Contender, waiting_at: dict[str, list[Entry]]) -> list[str]:
    """Pick the next workload until none is left: at each level the sibling that stands best as of now."""
    used: dict[str, int] = {}
    running: dict[str, int] = {}
    found = []

    def has_work(contender: Contender) -> list[Entry]:
        if not contender.children:
            return waiting_at.get(contender.path, [])
        return [entry for child in contender.children for entry in has_work(child)]

    def best(contender: Contender) -> Contender:
        return min((child for child in contender.children if has_work(child)), key=key)

    def gang_milli(contender: Contender) -> int:
        """What would be served next there."""
        while contender.children:
            contender = best(contender)
        return waiting_at[contender.path][0][GPUS_MILLI]

    def key(contender: Contender) -> tuple[Any, ...]:
        amount = contender.used + used.get(contender.path, 0)
        running_milli = contender.running_milli + running.get(contender.path, 0)
        tier = contender.tier(running_milli, gang_milli(contender))
        ratio = Fraction(amount, contender.entitled) if tier <= 1 else Fraction(0)
        oldest = min(entry[ELIGIBLE] for entry in has_work(contender))
        return tier, ratio, amount * contender.scale - contender.base, oldest, contender.path

    while has_work(top):
        way = [top]
        while way[-1].children:
            way.append(best(way[-1]))
        entry = waiting_at[way[-1].path].pop(0)
        found.append(entry[WORKLOAD].workload)
        for contender in way:
            used[contender.path] = used.get(contender.path, 0) + entry[GPU_MS]
            running[contender.path] = running.get(contender.path, 0) + entry[GPUS_MILLI]
    return found


def inside(entry: Entry) -> tuple[int, int, str]:
    """Inside an account: priority, then submit time, then id."""
    workload = entry[WORKLOAD]
    return -workload.priority, workload.submitted_at_s, workload.workload


def leaves(line: Line) -> dict[str, list[Entry]]:
    if not line.below:
        return {line.contender.path: list(line.entries)}
    return {path: work for below in line.below.values() for path, work in leaves(below).items()}


@settings(max_examples=100, deadline=None)
@given(trees(), st.data())
def test_sorting_by_figures_is_picking_the_best_head_again_and_again(
    world: dict[str, Any], data: st.DataObject
) -> None:
    tree = build(world, SUPPLY_MILLI)
    queue = data.draw(queues([leaf.path for leaf in tree.leaves()], min_runtime_s=0))
    line = lines(tree, waiting(queue), CONFIG)["allocated"]
    work = leaves(line)
    assert all(entries == sorted(entries, key=inside) for entries in work.values())
    assert [entry[WORKLOAD].workload for entry in line.entries] == picked(allocated(tree, CONFIG), work)


@settings(max_examples=100, deadline=None)
@given(trees(), st.data())
def test_a_chain_leads_to_the_leaf_that_has_the_work(world: dict[str, Any], data: st.DataObject) -> None:
    tree = build(world, SUPPLY_MILLI)
    queue = data.draw(queues([leaf.path for leaf in tree.leaves()], min_runtime_s=0))
    for line in lines(tree, waiting(queue), CONFIG).values():
        for place, entry in enumerate(line.entries):
            leaf, at = line.leaf(place)
            assert leaf.entries[at] is entry
            assert leaf.contender.path == tree.leaf_path(entry[WORKLOAD].account)
            assert line.spots(place)[-1] == (leaf, at)


@given(trees(max_leaves=6), st.data())
@settings(deadline=None)
def test_what_is_looked_up_for_all_at_once_is_what_each_has(
    tree: dict[str, Any], data: st.DataObject
) -> None:
    built = build(tree, SUPPLY_MILLI)
    leaves_of_tree = [path for path, node in built.nodes.items() if not node.children]
    pending = waiting(data.draw(queues(leaves_of_tree)))
    for line in lines(built, pending, CONFIG).values():
        spots = [line.spots(place) for place in range(len(line.entries))]
        for place, own in enumerate(spots):
            assert [line.spot(place, level) for level in range(len(own))] == own
        names = line.of_leaves(lambda leaf: [(leaf.contender.path, at) for at in range(len(leaf.entries))])
        assert list(names) == [(leaf.contender.path, at) for own in spots for leaf, at in own[-1:]]
