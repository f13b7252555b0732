"""Random trees and queues, as the oracle's dictionaries and as the product's values."""

import random
from typing import Any

from hypothesis import strategies as st

from gpuledger.policy.cycle import AccountState, PendingWorkload
from gpuledger.policy.tree import Capacity, Tree, build_tree

WINDOW_S, AHEAD_S = 7 * 86_400, 8 * 3_600
GPU_HOUR = 3_600_000
DEPTH_MAX, ACCOUNTS_MAX, SIBLINGS_MAX = 6, 200, 20


def _leaf(share: st.SearchStrategy[int], unit: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "share": share,
            "demand": st.integers(0, 40).map(lambda gpus: gpus * unit),
            "used": st.integers(0, 3000).map(lambda hours: hours * GPU_HOUR),
            "running": st.integers(0, 10).map(lambda gpus: gpus * unit),
            "children": st.just([]),
        }
    )


def trees(*, min_share: int = 0, unit: int = 1000, max_leaves: int = 12) -> st.SearchStrategy[dict[str, Any]]:
    """Trees under one virtual root; siblings are named a, b, c … from the left."""
    share = st.integers(min_share, 5)
    inner = st.recursive(
        _leaf(share, unit),
        lambda node: st.builds(
            lambda children, weight: {"share": weight, "children": children},
            st.lists(node, min_size=1, max_size=4),
            share,
        ),
        max_leaves=max_leaves,
    )
    roots = st.lists(inner, min_size=1, max_size=4)
    return roots.map(lambda children: _named({"share": 1, "name": "", "children": children}))


def forests(*, min_share: int = 0, unit: int = 1000) -> st.SearchStrategy[dict[str, Any]]:
    """Trees of a few leaves, and trees of up to 200 accounts in up to six levels, with limits here and there.

    In every other one shares changed within the window: its leaves are entitled to anything.
    """
    grown = st.builds(
        lambda seed, count: _grown(random.Random(seed), count, min_share, unit),
        st.integers(0, 2**32),
        st.integers(2, ACCOUNTS_MAX),
    )
    drawn = st.one_of(trees(min_share=min_share, unit=unit), grown)
    return st.builds(
        lambda tree, seed: tree if seed is None else with_past(random.Random(seed), tree),
        drawn,
        st.none() | st.integers(0, 2**32),
    )


def with_past(rng: random.Random, tree: dict[str, Any]) -> dict[str, Any]:
    """The same tree with what each leaf was entitled to, by shares that are others now."""
    if not tree["children"]:
        return {**tree, "entitled": rng.choice([0, rng.randint(0, 3000) * GPU_HOUR])}
    return {**tree, "children": [with_past(rng, child) for child in tree["children"]]}


def _grown(rng: random.Random, count: int, min_share: int, unit: int) -> dict[str, Any]:
    """Hang one account after the other below one that is there already."""
    tree: dict[str, Any] = {"share": 1, "name": "", "children": []}
    open_nodes = [(tree, 0)]
    for _ in range(count):
        above, depth = rng.choice(open_nodes)
        node: dict[str, Any] = {
            "share": rng.randint(min_share, 5),
            "demand": rng.randint(0, 40) * unit,
            "used": rng.choice([0, rng.randint(0, 3000) * GPU_HOUR]),
            "running": rng.randint(0, 10) * unit,
            "children": [],
        }
        if rng.random() < 0.2:
            node["limit"] = rng.randint(0, 60) * unit
        above["children"].append(node)
        if depth + 1 < DEPTH_MAX:
            open_nodes.append((node, depth + 1))
        open_nodes = [(one, at) for one, at in open_nodes if len(one["children"]) < SIBLINGS_MAX]
    return _named(tree)


def _named(tree: dict[str, Any]) -> dict[str, Any]:
    children = [
        _named({**child, "name": chr(ord("a") + place)}) for place, child in enumerate(tree["children"])
    ]
    return {**tree, "children": children}


def accounts(tree: dict[str, Any], above: str = "") -> list[AccountState]:
    """The tree's accounts, parents first."""
    listed = []
    for child in tree["children"]:
        path = f"{above}/{child['name']}" if above else child["name"]
        work = {} if child["children"] else {"used_gpu_ms": child["used"], "demand_milli": child["demand"]}
        listed.append(
            AccountState(
                account=path,
                share=child["share"],
                entitled_gpu_ms=child.get("entitled"),
                limit_milli=child.get("limit"),
                **work,
            )
        )
        listed.extend(accounts(child, path))
    return listed


def running(tree: dict[str, Any], above: str = "") -> dict[str, int]:
    """Running milli-GPU by leaf."""
    busy = {}
    for child in tree["children"]:
        path = f"{above}/{child['name']}" if above else child["name"]
        busy.update(running(child, path) if child["children"] else {path: child["running"]})
    return busy


def capacity(gpus_milli: int) -> Capacity:
    return Capacity(
        healthy_milli=gpus_milli, window_gpu_ms=gpus_milli * WINDOW_S, ahead_gpu_ms=gpus_milli * AHEAD_S
    )


def build(tree: dict[str, Any], gpus_milli: int) -> Tree:
    return build_tree(accounts(tree), capacity(gpus_milli), running_milli=running(tree))


def queues(leaves: list[str], *, min_runtime_s: int = 1) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Waiting workloads of the leaves, with ties in every field."""
    workload = st.fixed_dictionaries(
        {
            "account": st.sampled_from(leaves),
            "gpus": st.sampled_from([500, 1000, 4000, 8000]),
            "runtime": st.sampled_from([min_runtime_s, 3600, 7200, 100_000]),
            "priority": st.integers(-1, 1),
            "submitted": st.integers(0, 3),
            "eligible": st.integers(0, 3),
        }
    )
    return st.lists(workload, max_size=15).map(
        lambda drawn: [{**entry, "id": f"w{place}"} for place, entry in enumerate(drawn)]
    )


def waiting(queue: list[dict[str, Any]]) -> list[PendingWorkload]:
    return [
        PendingWorkload(
            workload=entry["id"],
            account=entry["account"],
            gpus_milli=entry["gpus"],
            submitted_at_s=entry["submitted"],
            eligible_at_s=entry["eligible"],
            priority=entry["priority"],
            minimum_runtime_s=entry["runtime"],
        )
        for entry in queue
    ]
