"""What went wrong with hosts, and which runs it ended: faults -> runs and their siblings -> incidents. Pure.

A *fault* is evidence that a host failed: the host became unhealthy or was taken out, or a run stopped for a reason that
says so. An *incident* is all the faults that belong together, with every run that they ended. Both follow from the
*set* of facts: order of arrival and repeats change nothing. Rules and sources: docs/decisions/0016-incidents.md.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

from gpuledger.events import host, workload
from gpuledger.events.words import code_of
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.ledger.facts import STOPS, Known, rank, winner
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.segments import derive
from gpuledger.ledger.stops import Stop, why

WINDOW_S = 600
"""A run is taken to have stopped because of a fault up to this long after it, and faults of one host this near to each
other are one incident. Twice the 300 s after which Slurm gives a silent node up by default (slurm.conf, SlurmdTimeout)
and Kubernetes deletes its pods (toleration of node.kubernetes.io/unreachable)."""

UNKNOWN_HOST = "-"
"""The host of a run whose source names none."""

NAME_LENGTH_MAX = 512
"""Longer ids are cut and end in a digest, so that whatever is made of them still fits a name."""


@dataclass(frozen=True, slots=True, order=True)
class RunName:
    """A run of a cluster."""

    workload: str
    run: str

    def __str__(self) -> str:
        """Return ``workload/run``."""
        return f"{self.workload}/{self.run}"


@dataclass(frozen=True, slots=True)
class Stay:
    """A run on hosts over ``[from_s, to_s)``."""

    from_s: int
    to_s: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A run that held GPUs and stopped.

    Args:
        stays: Where it was, in order; never empty.
        reason: Why it stopped, in the source's own word.
        gpu_uuids: Its devices at the start, where known.
    """

    name: RunName
    stays: tuple[Stay, ...]
    reason: str
    gpu_uuids: frozenset[str]

    @property
    def stop_s(self) -> int:
        """When it stopped."""
        return self.stays[-1].to_s

    def was_on(self, host_: str, at_s: int) -> bool:
        """Tell whether it was on a host up to an instant; one that stopped right then was."""
        return any(stay.from_s < at_s <= stay.to_s and host_ in stay.hosts for stay in self.stays)

    def was_running(self, at_s: int) -> bool:
        """Tell whether it had begun before an instant and had not stopped."""
        return self.stays[0].from_s < at_s <= self.stop_s


@dataclass(frozen=True, slots=True)
class Fault:
    """Evidence that a host failed.

    Args:
        evidence_s: When the evidence was first seen.
        noticed_s: When it was taken for a fault.
        hosts: The host; where a run of several hosts says that one of them failed, all of them.
        code: What, as a short code.
        gpu_uuids: The devices, when it was not the whole host.
        run: The run whose stop says so; None when it was said of the host itself.
    """

    evidence_s: int
    noticed_s: int
    hosts: tuple[str, ...]
    code: str
    gpu_uuids: frozenset[str] | None = None
    run: RunName | None = None

    def instants_before(self, stop_s: int) -> Iterator[int]:
        """Yield those of its instants, evidence and notice, that a stop lies within the window after."""
        for at_s in {self.evidence_s, self.noticed_s}:
            if 0 <= stop_s - at_s <= WINDOW_S:
                yield at_s


@dataclass(frozen=True, slots=True)
class Incident:
    """Faults that belong together, and the runs that they ended.

    Args:
        incident: Its id within the cluster: the host and the first evidence.
        noticed_s: When the first of the faults was noticed.
        runs: The runs, siblings included; never empty.
    """

    cluster: str
    incident: str
    host: str
    fault: str
    gpu_uuids: tuple[str, ...] | None
    noticed_s: int
    runs: tuple[RunName, ...]


def host_faults(facts: Iterable[HostFact]) -> list[Fault]:
    """Return the faults that the facts about hosts tell of, whether or not a run was there.

    A host that is said again to be unhealthy, for the same reason and without new evidence, has the same fault still:
    a gauge that sticks tells nothing new (trap 46). The fault is over when the host is healthy again or taken out.
    """
    by_host: dict[str, list[HostFact]] = {}
    for fact in facts:
        by_host.setdefault(fact.data.host, []).append(fact)
    return [fault for _, of_host in sorted(by_host.items()) for fault in _faults_of(of_host)]


def _faults_of(facts: Sequence[HostFact]) -> Iterator[Fault]:
    counting: dict[int, HostFact] = {}
    for fact in sorted(facts, key=lambda f: rank(f.known)):
        counting[fact.known.at_s] = fact
    known: dict[tuple[str, frozenset[str] | None], set[int]] = {}
    installed = True
    for at_s, fact in sorted(counting.items()):
        said = fact.data
        if isinstance(said, host.Retired):
            if installed:
                yield Fault(at_s, at_s, (said.host,), "retired")
            installed = False
            known.clear()
            continue
        installed = True
        if said.state != "unhealthy":
            if said.state in (None, "healthy", "reserved"):
                known.clear()
            continue
        seen_s = at_s if said.evidence_at is None else min(seconds(said.evidence_at), at_s)
        code, devices = code_of(said.reason or "") or "unhealthy", _devices(said)
        before = known.setdefault((code, devices), set())
        if not before or (said.evidence_at is not None and seen_s not in before):
            yield Fault(seen_s, at_s, (said.host,), code, devices)
        before.add(seen_s)


def _devices(said: host.HostFact) -> frozenset[str] | None:
    """Return the devices that a fact names, unless they are the whole host."""
    named = frozenset(said.gpu_uuids or ())
    return named if 0 < len(named) < said.gpus else None


def run_faults(runs: Iterable[ClosedRun]) -> list[Fault]:
    """Return the faults that the reasons of stops tell of; noticed when the run stopped (trap 11)."""
    return [
        Fault(
            run.stop_s,
            run.stop_s,
            run.stays[-1].hosts,
            code_of(run.reason),
            gpu_uuids=None,
            run=run.name,
        )
        for run in runs
        if why(run.reason) is Stop.NODE_FAILURE
    ]


def closed_runs(facts: Iterable[Known]) -> list[ClosedRun]:
    """Return the runs that held GPUs and stopped, by name, from all facts known of some workloads."""
    by_workload: dict[str, list[Known]] = {}
    for fact in facts:
        assert isinstance(fact.data, workload.WorkloadFact)  # noqa: S101 - the caller selected workloads
        by_workload.setdefault(fact.data.workload, []).append(fact)
    return [run for _, of_one in sorted(by_workload.items()) for run in _runs_of(of_one)]


def _runs_of(facts: Sequence[Known]) -> Iterator[ClosedRun]:
    stays: dict[RunName, list[Stay]] = {}
    for segment in derive(facts).segments:
        if segment.to_s is not None:
            name = RunName(segment.workload, segment.run)
            stays.setdefault(name, []).append(Stay(segment.from_s, segment.to_s, segment.hosts))
    for name, where in sorted(stays.items()):
        told = [fact for fact in facts if getattr(fact.data, "run", None) == name.run]
        stop = winner([fact for fact in told if isinstance(fact.data, STOPS)])
        if stop is None:
            continue  # it was resized, or changed its class, and goes on
        assert isinstance(stop.data, workload.Stopped)  # noqa: S101 - chosen above
        where.sort(key=lambda stay: stay.from_s)
        yield ClosedRun(name, tuple(where), stop.data.reason, _devices_of(told))


def _devices_of(told: Sequence[Known]) -> frozenset[str]:
    """Return the devices of a run, where they are known and have not changed."""
    if any(isinstance(fact.data, workload.Resized) for fact in told):
        return frozenset()
    started = winner([fact for fact in told if isinstance(fact.data, workload.Started)])
    return frozenset(getattr(started.data, "gpu_uuids", None) or ()) if started else frozenset()


def incidents_of(cluster: str, hosts: Iterable[HostFact], workloads: Iterable[Known]) -> list[Incident]:
    """Return the incidents that follow from facts, by when they were noticed.

    A run that stopped in the window after a fault of its host is lost to it, unless its reason is an ordinary end or a
    cancellation. Runs of its workload that were running then and stopped in the same window are lost with it,
    cancelled ones too: a gang loses all its members (trap 55).

    Args:
        cluster: The cluster that the facts are about.
        hosts: All facts about its hosts.
        workloads: All facts about the workloads that may have been ended.
    """
    runs = _Runs.of(closed_runs(workloads))
    faults = sorted({*host_faults(hosts), *run_faults(runs.by_name.values())}, key=_order)
    lost = [_lost(fault, runs) for fault in faults]
    found = []
    for group in _groups(faults, lost):
        ended = sorted({name for number in group for name in lost[number]})
        if ended:
            found.append(_incident(cluster, [faults[number] for number in group], ended))
    return sorted(found, key=lambda i: (i.noticed_s, i.incident))


class _Runs(NamedTuple):
    """Runs, and where to look for them."""

    by_name: Mapping[RunName, ClosedRun]
    on_host: dict[str, list[ClosedRun]]
    of_workload: dict[str, list[ClosedRun]]

    @classmethod
    def of(cls, runs: Iterable[ClosedRun]) -> Self:
        found = cls({run.name: run for run in runs}, defaultdict(list), defaultdict(list))
        for run in found.by_name.values():
            found.of_workload[run.name.workload].append(run)
            for name in {name for stay in run.stays for name in stay.hosts}:
                found.on_host[name].append(run)
        return found


def _order(fault: Fault) -> tuple[object, ...]:
    """Return a total order: first evidence first, what was said of a host before what a run says."""
    devices = sorted(fault.gpu_uuids or ())
    return (
        fault.evidence_s, fault.noticed_s, fault.run is not None, fault.hosts, fault.code, devices, str(fault.run),
    )  # fmt: skip


def _lost(fault: Fault, runs: _Runs) -> set[RunName]:
    """Return the runs that a fault ended, and their siblings."""
    lost = {fault.run} if fault.run is not None else set()
    if len(fault.hosts) == 1:
        lost |= {run.name for run in runs.on_host.get(fault.hosts[0], ()) if _was_hit(fault, run)}
    siblings = {
        run.name
        for gang in {name.workload for name in lost}
        for run in runs.of_workload.get(gang, ())
        if why(run.reason) is not Stop.ORDINARY
        and any(run.was_running(at_s) for at_s in fault.instants_before(run.stop_s))
    }
    return lost | siblings


def _was_hit(fault: Fault, run: ClosedRun) -> bool:
    if why(run.reason) not in (Stop.NODE_FAILURE, Stop.FAILURE):
        return False
    if fault.gpu_uuids is not None and run.gpu_uuids and fault.gpu_uuids.isdisjoint(run.gpu_uuids):
        return False
    return any(run.was_on(fault.hosts[0], at_s) for at_s in fault.instants_before(run.stop_s))


def _groups(faults: Sequence[Fault], lost: Sequence[set[RunName]]) -> list[list[int]]:
    """Return the numbers of the faults that belong together: near each other on one host, or of one run."""
    parent = list(range(len(faults)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    on_host: dict[str, list[tuple[int, int]]] = {}
    of_run: dict[RunName, int] = {}
    for number, fault in enumerate(faults):
        for name in fault.hosts:
            on_host.setdefault(name, []).extend(((fault.evidence_s, number), (fault.noticed_s, number)))
        for run in lost[number]:
            parent[root(number)] = root(of_run.setdefault(run, number))
    for instants in on_host.values():
        for (before_s, one), (after_s, other) in pairwise(sorted(instants)):
            if after_s - before_s <= WINDOW_S:
                parent[root(other)] = root(one)
    groups: dict[int, list[int]] = {}
    for number in range(len(faults)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())


def _incident(cluster: str, faults: Sequence[Fault], runs: Sequence[RunName]) -> Incident:
    """Put an incident together; the faults are in order."""
    of_hosts = [fault for fault in faults if fault.run is None]
    lead = (of_hosts or faults)[0]
    mentions = Counter(name for fault in faults for name in fault.hosts)
    where = min(lead.hosts, key=lambda name: (-mentions[name], name)) if lead.hosts else UNKNOWN_HOST
    whole = len(of_hosts) < len(faults) or any(fault.gpu_uuids is None for fault in of_hosts)
    named = {uuid for fault in of_hosts for uuid in fault.gpu_uuids or ()}
    place = where if lead.hosts else f"{UNKNOWN_HOST}/{runs[0].workload}"
    return Incident(
        cluster=cluster,
        incident=bounded(f"{place}@{iso(instant(faults[0].evidence_s))}"),
        host=where,
        fault=lead.code,
        gpu_uuids=None if whole else tuple(sorted(named)),
        noticed_s=min(fault.noticed_s for fault in faults),
        runs=tuple(runs),
    )


def bounded(name: str) -> str:
    """Return a name, cut to a length that fits and ended with its digest where it is longer."""
    if len(name) <= NAME_LENGTH_MAX:
        return name
    return f"{name[: NAME_LENGTH_MAX - 33]}~{hashlib.sha256(name.encode()).hexdigest()[:32]}"
