"""KAI's Queues and the pods of its PodGroups, out of a cycle. Pure.

Why each field is set as it is stands in docs/enforcing.md.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gpuledger.enforce.config import Kai
from gpuledger.enforce.facts import Facts, Issued
from gpuledger.enforce.names import Named, Reading
from gpuledger.enforce.objects import (
    Object,
    accounts,
    annotations,
    field_of,
    managed,
    name,
    patch,
    quantity_milli,
    same_duration,
    setting,
)
from gpuledger.enforce.plan import Draft, Eviction, Target, drafted
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.orders import Leaving

QUEUE = "Queue"
GROUP = "pod-group-name"
GPU = ("spec", "resources", "gpu")
NO_LIMIT = -1
OVER = frozenset(("Succeeded", "Failed"))


class Seen(NamedTuple):
    """KAI at one moment, as the API prints its objects."""

    queues: Sequence[Object] = ()
    groups: Sequence[Object] = ()
    pods: Sequence[Object] = ()


def draft(facts: Facts, seen: Seen, config: Kai, reading: Reading) -> Draft:
    """Return everything that is wanted of KAI.

    Args:
        facts: The cycle, and the ledger now.
        seen: KAI now.
        config: What may be changed.
        reading: The mapping: a queue's name is the account that its work is submitted under.
    """
    issued = facts.issued()
    queues = managed(seen.queues, config.managed)
    named = accounts(queues, issued, config.names, reading)
    parts = [Draft(notes=tuple(f"{QUEUE} {note}" for note in named.notes))]
    parts += [
        Draft(tuple(_queue(queue, issued[path], config)))
        for queue in queues
        if (path := named.paths.get(name(queue))) is not None
    ]
    if config.preempt:
        parts.append(_departures(facts, seen, named))
    return drafted(parts)


def _queue(queue: Object, issued: Issued, config: Kai) -> Iterator[Target]:
    whole = issued.issued_milli // GPU_MILLI
    wanted: dict[str, tuple[int, str]] = {}
    if config.quotas:
        wanted["quota"] = whole, issued.why
        wanted["overQuotaWeight"] = -(-issued.weight // GPU_MILLI), issued.why
    if config.limits:
        wanted["limit"] = whole, "nobody gets more than is issued"
    if wanted and field_of(queue, *GPU) is None:
        yield _whole(queue, {field: number for field, (number, _) in wanted.items()}, issued.why)
    else:
        for field, (number, why) in wanted.items():
            way = (*GPU, field)
            yield Target(
                object=f"{QUEUE} {name(queue)}",
                field=f"gpu.{field}",
                now=_told(field_of(queue, *way), number),
                wanted=str(number),
                why=why,
                action=patch(queue, QUEUE, *setting(queue, way, number)),
            )
    if config.min_runtime_s is not None:
        yield from _runtimes(queue, f"{config.min_runtime_s}s")


def _whole(queue: Object, wanted: dict[str, int], why: str) -> Target:
    """Return all that is said of GPUs, where a queue says nothing; KAI reads a limit that is missing as 0."""
    value = {"limit": NO_LIMIT, **wanted}
    return Target(
        object=f"{QUEUE} {name(queue)}",
        field="gpu",
        now=None,
        wanted=", ".join(f"{field} {number}" for field, number in sorted(value.items())),
        why=why,
        action=patch(queue, QUEUE, *setting(queue, GPU, value)),
        kept=False,
    )


def _runtimes(queue: Object, wanted: str) -> Iterator[Target]:
    for field in ("preemptMinRuntime", "reclaimMinRuntime"):
        yield Target(
            object=f"{QUEUE} {name(queue)}",
            field=field,
            now=same_duration(field_of(queue, "spec", field), wanted),
            wanted=wanted,
            why="KAI's own preemption keeps to the minimum runtime too",
            action=patch(queue, QUEUE, *setting(queue, ("spec", field), wanted)),
        )


def _told(now: Any, wanted: int) -> str | None:  # noqa: ANN401 - a number of any kind
    if now is None:
        return None
    return str(wanted) if quantity_milli(now) == wanted * GPU_MILLI else str(now)


def _departures(facts: Facts, seen: Seen, named: Named) -> Draft:
    """Return the evictions of every group whose runs all may leave: a gang without a part of it is of no use."""
    by_group: dict[str, list[Leaving]] = {}
    for leaving in facts.leaving():
        by_group.setdefault(leaving.id.workload, []).append(leaving)
    queues = {_identity(group): field_of(group, "spec", "queue") for group in seen.groups}
    targets: list[Target] = []
    notes: list[str] = []
    for group, runs in sorted(by_group.items()):
        kept = [run.spared for run in runs if run.spared] + _protected(facts, group)
        pods = [pod for pod in seen.pods if _group_of(pod) == group and _holds(pod)]
        if kept:
            notes.append(f"PodGroup {group} stays: {kept[0]}")
        elif queues.get(group) not in named.paths or not pods:
            notes.append(f"PodGroup {group}: none of its pods runs in a queue that may be changed")
        else:
            targets += [_evicted(pod, group, f"by {facts.cycle}: {runs[0].reason}") for pod in pods]
    return Draft(tuple(targets), tuple(notes))


def _protected(facts: Facts, group: str) -> list[str]:
    """Return why runs of the group stay that the cycle said nothing of."""
    return [
        f"its run {run.run} is within its minimum runtime"
        for run in facts.running.values()
        if run.workload == group and not run.is_preemptible(facts.now_s)
    ]


def _evicted(pod: Object, group: str, why: str) -> Target:
    meta = pod["metadata"]
    return Target(
        object=f"Pod {meta['namespace']}/{meta['name']}",
        field="run",
        now="running",
        wanted="evicted",
        why=f"with PodGroup {group}, {why}",
        action=Eviction(meta["namespace"], meta["name"], meta["uid"]),
        destructive=True,
        kept=False,
    )


def _holds(pod: Object) -> bool:
    """Say whether a pod holds its GPUs and was not asked to go yet."""
    meta = pod["metadata"]
    is_bound = bool(field_of(pod, "spec", "nodeName")) and field_of(pod, "status", "phase") not in OVER
    return is_bound and meta.get("deletionTimestamp") is None


def _identity(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{name(one)}"


def _group_of(pod: Object) -> str | None:
    group = annotations(pod).get(GROUP)
    return None if group is None else f"{pod['metadata']['namespace']}/{group}"
