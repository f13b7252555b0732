"""Random trees and queues, as the oracle's dictionaries and as the product's values."""

from typing import Any

from hypothesis import strategies as st

from gpuledger.policy.cycle import AccountState, PendingWorkload
from gpuledger.policy.tree import Capacity, Tree, build_tree

WINDOW_S, AHEAD_S = 7 * 86_400, 8 * 3_600
GPU_HOUR = 3_600_000


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
        listed.append(AccountState(account=path, share=child["share"], **work))
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
