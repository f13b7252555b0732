"""What is known to come on a cluster, in order of time: the reservation calendar with all that shares its dates. Pure.

A date is a *bound* when it holds whatever others do, as long as cycles come and whoever is told to leave does so within
the grace. It is an *estimate* when it rests on where a run was taken to be, or on a limit that its user declared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpuledger.policy.cadence import NO_CYCLE, Cadence
from gpuledger.policy.places import place_runs
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.state import ClusterState, PolicyConfig, ReservationKind, RunningRun
from gpuledger.policy.words import gpus, hosts_text, moment


class Kind(StrEnum):
    """What comes."""

    PROTECTION_END = "protection ends"
    LIMIT = "declared limit"
    RESERVATION = "reservation"
    DRAIN = "drain"
    HOLD_EXPIRY = "hold expires"
    LOT_LAPSE = "budget lapses"
    PERIOD_EDGE = "period ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that is to come.

    Args:
        at_s: When.
        kind: What.
        certainty: What the date rests on.
        text: One sentence.
        workload: Whose, if it is about one.
        run: Which run of it.
        account: Of whom, if it is about one.
        host: Which host, if it is about one.
        gpus_milli: How many GPUs, if it is about some.
    """

    at_s: int
    kind: Kind
    certainty: Certainty
    text: str
    workload: str | None = None
    run: str | None = None
    account: str | None = None
    host: str | None = None
    gpus_milli: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the entry under its published keys."""
        return {
            "at": moment(self.at_s),
            "kind": self.kind.value,
            "certainty": self.certainty.value,
            "text": self.text,
            "workload": self.workload,
            "run": self.run,
            "account": self.account,
            "host": self.host,
            "gpus_milli": self.gpus_milli,
        }


@dataclass(frozen=True, slots=True)
class Agenda:
    """What is to come on a cluster.

    Args:
        cluster: The cluster.
        at_s: As of when.
        entries: In order of time.
        cadence: Which cycle left the reservations, and how often cycles come.
    """

    cluster: str
    at_s: int
    entries: tuple[Entry, ...] = field(default_factory=tuple)
    cadence: Cadence = NO_CYCLE

    def as_json(self) -> dict[str, Any]:
        """Return the agenda under its published keys."""
        entries = [entry.as_json() for entry in self.entries]
        return {
            "cluster": self.cluster,
            "at": moment(self.at_s),
            "every_s": self.cadence.every_s,
            "entries": entries,
        }

    def lines(self) -> Iterator[str]:
        """Yield the agenda as text, line by line."""
        yield f"{self.cluster}, as of {moment(self.at_s)}"
        if any(entry.kind in (Kind.RESERVATION, Kind.DRAIN) for entry in self.entries):
            yield from self.cadence.doubts(self.at_s)
        for entry in self.entries:
            yield f"{moment(entry.at_s)}  {entry.kind.value:<15}  {entry.certainty.value:<8}  {entry.text}"


def in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return entries in order of time, then by kind and by what they are about."""

    def key(entry: Entry) -> tuple[int, str, str, str, str]:
        return entry.at_s, entry.kind.value, entry.host or "", entry.workload or "", entry.text

    return tuple(sorted(entries, key=key))


def of_hosts(
    state: ClusterState,
    config: PolicyConfig,
    *,
    limits_s: Mapping[str, int] | None = None,
    cadence: Cadence = NO_CYCLE,
) -> Iterator[Entry]:
    """Yield what comes on the hosts: ends of protection, declared limits, reservations, drains.

    Args:
        state: The cluster, with the reservations that the cycle before left.
        config: The knobs.
        limits_s: Workload -> declared limit of each of its runs, where one was declared.
        cadence: Which cycle left the reservations, and how often cycles come.
    """
    for run in state.running:
        yield from _of_run(run, state.at_s, limits_s or {})
    for kept in state.reservations:
        by_s = cadence.latest_start_s(kept, state.at_s, config)
        size = gpus(sum(kept.placement.values()))
        where = f" on {hosts_text(kept.placement)}" if state.hosts else ""
        told = (
            "runs were told to leave"
            if kept.kind is ReservationKind.PROMISE
            else "what runs there leaves whatever the ratios"
        )
        text = f"{kept.workload} starts by then: it keeps {size}{where} ({kept.kind.value}: {told})."
        yield Entry(
            at_s=by_s,
            kind=Kind.RESERVATION,
            certainty=Certainty.BOUND,
            text=text,
            workload=kept.workload,
            gpus_milli=sum(kept.placement.values()),
        )
    yield from _drains(state, config, cadence)


def _of_run(run: RunningRun, at_s: int, limits_s: Mapping[str, int]) -> Iterator[Entry]:
    about = {"workload": run.workload, "run": run.run, "account": run.account}
    where = f" on {hosts_text(run.placement)}" if run.placement else ""
    if run.klass == "allocated" and run.protected_until_s > at_s:
        whose = f"{run.workload}/{run.run} of {run.account}"
        text = f"{whose} may be preempted from then on: {gpus(run.gpus_milli)}{where}."
        yield Entry(
            at_s=run.protected_until_s,
            kind=Kind.PROTECTION_END,
            certainty=Certainty.BOUND,
            text=text,
            gpus_milli=run.gpus_milli,
            **about,
        )
    limit_s = limits_s.get(run.workload)
    if limit_s is not None and run.started_at_s + limit_s > at_s:
        text = f"{run.workload}/{run.run} of {run.account} reaches its declared limit: {gpus(run.gpus_milli)}{where}."
        yield Entry(
            at_s=run.started_at_s + limit_s,
            kind=Kind.LIMIT,
            certainty=Certainty.ESTIMATE,
            text=text,
            gpus_milli=run.gpus_milli,
            **about,
        )


def _drains(state: ClusterState, config: PolicyConfig, cadence: Cadence) -> Iterator[Entry]:
    """Yield when each draining host is empty: when the last run there is past its protection, and was told to leave."""
    draining = [host for host in state.hosts if host.draining]
    if not draining:
        return
    guessed = {run.id for run in state.running if not run.placement}
    since_s = cadence.since_s(state.at_s)
    places = place_runs(state.running, state.hosts)
    runs = {run.id: run for run in state.running}
    for host in draining:
        there = [run for run, placement in places.items() if host.host in placement]
        at_s = max((max(runs[run].safe_until_s(0), since_s) for run in there), default=None)
        by_s = state.at_s if at_s is None else at_s + cadence.cycle_s + config.grace_s
        certainty = Certainty.ESTIMATE if guessed & set(there) else Certainty.BOUND
        last = (
            "nothing runs there any more"
            if not there
            else f"{_count(len(there))} there, and leave one by one"
        )
        text = f"{host.host} is empty by then: {last}."
        yield Entry(
            at_s=by_s,
            kind=Kind.DRAIN,
            certainty=certainty,
            text=text,
            host=host.host,
            gpus_milli=host.gpus_milli,
        )


def _count(runs: int) -> str:
    return "one run is" if runs == 1 else f"{runs} runs are"
