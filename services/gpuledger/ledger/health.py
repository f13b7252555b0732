"""Observations of devices and the XID table -> which host is in trouble, from when to when, and why. Pure.

Nothing here remembers what was concluded before: the same observations under another table give what would have
been concluded then, so that any month's availability can be computed anew (law 12).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from gpuledger.events.budget import Repeated, XidTable
from gpuledger.events.host import HealthObserved, HostState

XID_TABLE = "xid_table"
"""The policy that XID tables are versions of."""

STARTING_TABLE = XidTable(
    unhealthy=[48, 64, 79, 95, 119, 120, 140, 143],
    draining=[63, 94],
    application=[13, 31, 43, 45, 68, 109],
    repeated={74: Repeated(times=2, within_s=86_400)},
    remap_failed="unhealthy",
    remap_pending="draining",
    lost="unhealthy",
)
"""In force until somebody sets another. Respectable sources disagree about 63, 92, 94 and a pending remap."""

_SEVERITY: Mapping[HostState, int] = {"healthy": 0, "draining": 1, "unhealthy": 2}


class Version(NamedTuple):
    """A table that was set: from when, and by which row of ``~org``."""

    from_s: int
    org_seq: int
    table: XidTable


class Tables:
    """Every table that was or will be in force; of one moment the last set counts."""

    def __init__(self, versions: Iterable[Version] = ()) -> None:
        steps = {v.from_s: v.table for v in sorted(versions, key=lambda v: (v.from_s, v.org_seq))}
        self._steps = sorted(steps.items(), key=lambda step: step[0])

    def at(self, at_s: int) -> XidTable:
        """Return the table in force at an instant."""
        index = bisect_right(self._steps, at_s, key=lambda step: step[0])
        return self._steps[index - 1][1] if index else STARTING_TABLE


class Observation(NamedTuple):
    """What was observed, and when."""

    at_s: int
    said: HealthObserved


class Trouble(NamedTuple):
    """A device that could not be used, or had to be emptied.

    Args:
        host: The host.
        device: Its UUID, or its PCI address where no observation names it.
        state: ``unhealthy`` or ``draining``.
        reason: ``xid-79``, ``remap-failed``, …
        from_s: When the evidence was first seen.
        noticed_s: When it sufficed; later only where an error must come more than once.
        to_s: The first clean check after that; None while there was none.
    """

    host: str
    device: str
    state: HostState
    reason: str
    from_s: int
    noticed_s: int
    to_s: int | None


class Change(NamedTuple):
    """What a host's health is from an instant on.

    Args:
        at_s: From when.
        state: The worst of its devices' states.
        reason: Why, or empty when it is healthy.
        devices: Those in that state.
        noticed_s: When that was understood.
    """

    at_s: int
    state: HostState
    reason: str
    devices: tuple[str, ...]
    noticed_s: int


def troubles(observations: Iterable[Observation], tables: Tables) -> list[Trouble]:
    """Return every trouble of every device, in order; a function of the set of observations alone."""
    by_device: dict[tuple[str, str], list[Observation]] = {}
    clean: dict[str, list[Observation]] = {}
    ordered = sorted(set(observations), key=_order)
    names = _names(ordered)
    for seen in ordered:
        devices = _devices(seen, names)
        for device in devices:
            by_device.setdefault((seen.said.host, device), []).append(seen)
        if not devices:
            clean.setdefault(seen.said.host, []).append(seen)
    found: list[Trouble] = []
    for (host, device), own in by_device.items():
        history = sorted([*own, *clean.get(host, ())], key=_order)
        found += _of_device(host, device, history, tables)
    return sorted(found, key=lambda t: (t.from_s, t.host, t.device, t.reason))


def changes(found: Sequence[Trouble]) -> dict[str, list[Change]]:
    """Return, by host, how its health changed; the worst trouble of an instant counts."""
    hosts: dict[str, list[Change]] = {}
    for host, own in groupby(sorted(found, key=lambda t: t.host), key=lambda t: t.host):
        troubles_ = list(own)
        edges = {t.from_s for t in troubles_} | {t.to_s for t in troubles_ if t.to_s is not None}
        told: list[Change] = []
        for at_s in sorted(edges):
            change = _state_at(at_s, troubles_)
            if not told or change[1:4] != told[-1][1:4]:
                told.append(change)
        hosts[host] = told
    return hosts


def _of_device(host: str, device: str, history: Sequence[Observation], tables: Tables) -> Iterator[Trouble]:
    """Yield one trouble for each state and reason; the same again before a clean check is the same trouble."""
    open_: dict[tuple[HostState, str], Trouble] = {}
    times: dict[int, list[int]] = {}
    for at_s, said in history:
        if said.kind == "clean":
            yield from (trouble._replace(to_s=at_s) for trouble in open_.values())
            open_.clear()
            times.clear()
            continue
        state, reason, from_s = _judged(at_s, said, tables.at(at_s), times)
        if state != "healthy":
            open_.setdefault((state, reason), Trouble(host, device, state, reason, from_s, at_s, None))
    yield from open_.values()


def _judged(
    at_s: int, said: HealthObserved, table: XidTable, times: dict[int, list[int]]
) -> tuple[HostState, str, int]:
    """Return the state that an observation means, why, and since when."""
    if said.kind == "remap_failed":
        return table.remap_failed, "remap-failed", at_s
    if said.kind == "remap_pending":
        return table.remap_pending, "remap-pending", at_s
    if said.kind == "lost":
        return table.lost, "lost", at_s
    code = said.code or 0
    reason = f"xid-{code}"
    if code in table.unhealthy:
        return "unhealthy", reason, at_s
    if code in table.draining:
        return "draining", reason, at_s
    limit = table.repeated.get(code)
    if limit is None:
        return "healthy", reason, at_s
    seen = times.setdefault(code, [])
    if not seen or seen[-1] != at_s:  # two logs may tell of the same one
        seen.append(at_s)
    recent = [before for before in seen if at_s - before < limit.within_s]
    if len(recent) < limit.times:
        return "healthy", reason, at_s
    return "unhealthy", f"{reason}-repeated", recent[0]


def _state_at(at_s: int, found: Sequence[Trouble]) -> Change:
    present = [t for t in found if t.from_s <= at_s and (t.to_s is None or t.to_s > at_s)]
    if not present:
        return Change(at_s, "healthy", "", (), at_s)
    worst = max(_SEVERITY[t.state] for t in present)
    causes = sorted((t for t in present if _SEVERITY[t.state] == worst), key=lambda t: (t.from_s, t.reason))
    noticed_s = max(at_s, min(t.noticed_s for t in causes))
    return Change(
        at_s, causes[0].state, causes[0].reason, tuple(sorted({t.device for t in causes})), noticed_s
    )


def _order(seen: Observation) -> tuple[int, bool, str, str, str, int]:
    """Return the order of observations; a clean check in the second of an error came before it."""
    said = seen.said
    return (
        seen.at_s,
        said.kind != "clean",
        said.gpu_uuid or "",
        said.pci or "",
        said.kind,
        said.code or 0,
    )


_Names = Mapping[tuple[str, str], Sequence[tuple[int, str]]]
"""(host, place) -> which device was seen there, and when, in order."""


def _names(observations: Iterable[Observation]) -> _Names:
    names: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for at_s, said in observations:
        if said.pci and said.gpu_uuid:
            names.setdefault((said.host, said.pci), []).append((at_s, said.gpu_uuid))
    return names


def _devices(seen: Observation, names: _Names) -> set[str]:
    """Return whom an observation speaks of; nobody when it speaks of the whole host.

    A log knows the place alone: the device is the one that was seen there last, or else first. A clean check of a
    place speaks of whatever sat there before, too: a device that was exchanged is in nobody's way.
    """
    at_s, said = seen
    if said.pci is None:
        return {said.gpu_uuid} if said.gpu_uuid else set()
    there = names.get((said.host, said.pci), ())
    before = [uuid for since_s, uuid in there if since_s <= at_s]
    if said.kind == "clean":
        return {said.gpu_uuid or said.pci, said.pci, *before}
    if said.gpu_uuid:
        return {said.gpu_uuid}
    if before:
        return {before[-1]}
    return {there[0][1] if there else said.pci}
