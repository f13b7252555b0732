"""Kueue's ClusterQueues, Cohorts and Workloads, out of a cycle. Pure.

Why each field is set as it is stands in docs/enforcing.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpuledger.enforce.config import Kueue
from gpuledger.enforce.facts import Facts, Issued
from gpuledger.enforce.names import Named
from gpuledger.enforce.objects import (
    LEFT,
    Object,
    accounts,
    annotations,
    field_of,
    managed,
    name,
    patch,
    pointer,
    quantity,
    quantity_milli,
    same_quantity,
    setting,
)
from gpuledger.enforce.plan import Draft, Target, drafted
from gpuledger.enforce.quotas import divide, unserved
from gpuledger.kernel.accounts import parent
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.published import milli_of
from gpuledger.policy.words import gpus

QUEUE, COHORT, WORKLOAD = "ClusterQueue", "Cohort", "Workload"
NONE = ""
_NAMED = 5


class Seen(NamedTuple):
    """Kueue at one moment, as the API prints its objects."""

    queues: Sequence[Object] = ()
    cohorts: Sequence[Object] = ()
    workloads: Sequence[Object] = ()


class _Place(NamedTuple):
    """Where the quota of the GPUs stands in an object."""

    path: tuple[str | int, ...]
    value: Mapping[str, Any]
    tests: tuple[Mapping[str, Any], ...]


def draft(facts: Facts, seen: Seen, config: Kueue) -> Draft:
    """Return everything that is wanted of Kueue."""
    issued = facts.issued()
    queues, cohorts = managed(seen.queues, config.managed), managed(seen.cohorts, config.managed)
    of_queues = accounts(queues, issued, config.names, None)
    of_cohorts = accounts(cohorts, issued, config.names, None)
    parts = [Draft(notes=tuple(f"ClusterQueue {note}" for note in of_queues.notes))]
    parts.append(Draft(notes=tuple(f"Cohort {note}" for note in of_cohorts.notes)))
    queued = set(of_queues.paths.values())
    roots = [path for path in of_cohorts.paths.values() if parent(path) is None]
    divided = divide(
        issued,
        milli_of(facts.record["supply_gpus"]),
        queued=queued,
        roots=roots,
        by_hand_milli=_by_hand_milli(seen, of_queues, of_cohorts, config),
    )
    parts += [
        _queue(queue, issued[path], divided.queues[path], config)
        for queue in queues
        if (path := of_queues.paths.get(name(queue))) is not None
    ]
    parts += [
        _cohort(cohort, issued[path], divided.roots.get(path), config)
        for cohort in cohorts
        if (path := of_cohorts.paths.get(name(cohort))) is not None
    ]
    if config.quotas and queued:
        parts.append(Draft(notes=tuple(_idle(unserved(issued, queued)))))
    if config.preempt:
        parts.append(_departures(facts, seen.workloads, of_queues))
        parts.append(Draft(tuple(_returns(seen.workloads))))
    return drafted(parts)


def _idle(idle: Sequence[Issued]) -> Iterator[str]:
    """Say what is lent to nobody because no queue serves the accounts that it is issued to."""
    if idle:
        named = ", ".join(one.account for one in idle[:_NAMED])
        more = f" and {len(idle) - _NAMED} more" if len(idle) > _NAMED else ""
        size = gpus(sum(one.issued_milli for one in idle))
        yield f"{size} issued to accounts that no {QUEUE} serves are lent to nobody: {named}{more}"


def _by_hand_milli(seen: Seen, of_queues: Named, of_cohorts: Named, config: Kueue) -> int:
    """Return the quota that somebody else keeps: of what is not ours to change, and of inner cohorts."""
    others = [one for one in seen.queues if name(one) not in of_queues.paths]
    others += [one for one in seen.cohorts if parent(of_cohorts.paths.get(name(one), "not/ours")) is not None]
    return sum(
        quantity_milli(place.value.get("nominalQuota")) or 0
        for one in others
        for place in _places(one, config)
    )


def _queue(queue: Object, issued: Issued, quota: int, config: Kueue) -> Draft:
    targets = list(_weight(queue, QUEUE, issued)) if config.weights else []
    place, note = _place(queue, QUEUE, config)
    if place is None:
        return Draft(tuple(targets), (note,))
    if config.quotas:
        is_shared = quota != issued.issued_milli // GPU_MILLI
        why = f"{issued.why}; queues below it hold the others" if is_shared else issued.why
        targets.append(_quota(queue, QUEUE, place, "nominalQuota", str(quota), why))
    limits = (("borrowingLimit", config.borrow, "borrow"), ("lendingLimit", config.lend, "lend"))
    chosen = [(field, may, verb) for field, may, verb in limits if may is not None]
    if chosen and not (field_of(queue, "spec", "cohortName") or field_of(queue, "spec", "cohort")):
        note = f"{QUEUE} {name(queue)}: it is in no cohort, and can neither borrow nor lend"
        return Draft(tuple(targets), (note,))
    for field, may, verb in chosen:
        why = f"queues {'may' if may else 'do not'} {verb} here"
        targets.append(_quota(queue, QUEUE, place, field, NONE if may else "0", why))
    return Draft(tuple(targets))


def _cohort(cohort: Object, issued: Issued, spare: int | None, config: Kueue) -> Draft:
    """Return what is wanted of a Cohort; that of a root also holds GPUs that no queue was given."""
    targets = list(_weight(cohort, COHORT, issued)) if config.weights else []
    if spare is None or not config.quotas:
        return Draft(tuple(targets))
    place, note = _place(cohort, COHORT, config)
    if place is None:
        return Draft(tuple(targets), (note,))
    why = "so many GPUs are given to no queue, and may be borrowed by whoever asks next"
    targets.append(_quota(cohort, COHORT, place, "nominalQuota", str(spare), why))
    return Draft(tuple(targets))


def _weight(one: Object, kind: str, issued: Issued) -> Iterator[Target]:
    wanted = quantity(issued.weight)
    way = ("spec", "fairSharing", "weight")
    yield Target(
        object=f"{kind} {name(one)}",
        field="fairSharing.weight",
        now=same_quantity(field_of(one, *way), wanted),
        wanted=wanted,
        why=issued.why,
        action=patch(one, kind, *setting(one, way, wanted)),
    )


def _quota(one: Object, kind: str, place: _Place, field: str, wanted: str, why: str) -> Target:
    now = place.value.get(field)
    at = pointer(*place.path, field)
    change: Mapping[str, Any] = (
        {"op": "add", "path": at, "value": wanted} if wanted else {"op": "remove", "path": at}
    )
    return Target(
        object=f"{kind} {name(one)}",
        field=field,
        now=NONE if now is None else same_quantity(now, wanted or "-"),
        wanted=wanted,
        why=why,
        action=patch(one, kind, *place.tests, change),
    )


def _place(one: Object, kind: str, config: Kueue) -> tuple[_Place | None, str]:
    """Return where the GPUs' quota stands, or why that cannot be said."""
    found = _places(one, config)
    if len(found) == 1:
        return found[0], ""
    many = "several flavours have" if found else "no flavour has"
    return None, f"{kind} {name(one)}: {many} {config.resource}; name the one of this cluster under `flavors`"


def _places(one: Object, config: Kueue) -> list[_Place]:
    """Return every place where GPUs of the cluster have a quota in an object."""
    found = []
    for group, of_group in enumerate(field_of(one, "spec", "resourceGroups") or ()):
        for flavor, quotas in enumerate(of_group["flavors"]):
            for resource, value in enumerate(quotas["resources"]):
                if value["name"] == config.resource and (
                    not config.flavors or quotas["name"] in config.flavors
                ):
                    way = ("spec", "resourceGroups", group, "flavors", flavor)
                    at = (*way, "resources", resource)
                    tests = (
                        {"op": "test", "path": pointer(*way, "name"), "value": quotas["name"]},
                        {"op": "test", "path": pointer(*at, "name"), "value": config.resource},
                    )
                    found.append(_Place(at, value, tests))
    return found


def _departures(facts: Facts, workloads: Sequence[Object], of_queues: Named) -> Draft:
    ours = {_identity(one): one for one in workloads if _queue_of(one) in of_queues.paths}
    targets: list[Target] = []
    notes: list[str] = []
    for leaving in facts.leaving():
        one = ours.get(leaving.id.workload)
        if leaving.spared:
            notes.append(f"{WORKLOAD} {leaving.id.workload} stays: {leaving.spared}")
        elif one is None or field_of(one, "spec", "active") is False:
            notes.append(f"{WORKLOAD} {leaving.id.workload}: it runs in no queue that may be changed")
        else:
            mark = setting(one, ("metadata", "annotations", LEFT), facts.cycle)
            targets.append(
                Target(
                    object=f"{WORKLOAD} {one['metadata']['namespace']}/{name(one)}",
                    field="spec.active",
                    now="true",
                    wanted="false",
                    why=f"by {facts.cycle}: {leaving.reason}",
                    action=patch(one, WORKLOAD, *mark, {"op": "add", "path": "/spec/active", "value": False}),
                    destructive=True,
                    kept=False,
                )
            )
    return Draft(tuple(targets), tuple(notes))


def _returns(workloads: Sequence[Object]) -> Iterator[Target]:
    """Yield the workloads that left and gave their GPUs back: they may wait for others again."""
    for one in workloads:
        has_left = LEFT in annotations(one) and field_of(one, "spec", "active") is False
        if has_left and _queue_of(one) is None:
            mark = {"op": "remove", "path": pointer("metadata", "annotations", LEFT)}
            yield Target(
                object=f"{WORKLOAD} {one['metadata']['namespace']}/{name(one)}",
                field="spec.active",
                now="false",
                wanted="true",
                why="it gave its GPUs back, and waits for others",
                action=patch(one, WORKLOAD, mark, {"op": "add", "path": "/spec/active", "value": True}),
                kept=False,
            )


def _identity(one: Object) -> str:
    meta = one["metadata"]
    return f"{meta['namespace']}/{meta['name']}/{meta['uid']}"


def _queue_of(one: Object) -> str | None:
    """Return the ClusterQueue that a workload holds quota of, or None."""
    found = field_of(one, "status", "admission", "clusterQueue")
    return None if found is None else str(found)
