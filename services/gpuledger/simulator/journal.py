"""A simulation as the events that a ledger would have been told: ``gpuledger import events`` reads them.

The ledger that has read them, rolled up, says of the same days what ``measures`` says. One thing it cannot be told, as
no source of events knows it: what is kept free for a waiting job (there it is free). And a roll-up spreads a gang
evenly over its hosts, which matters while one of them is drained or down.
"""

from collections.abc import Iterator, Mapping

from gpuledger.events import host as hosts
from gpuledger.events import workload
from gpuledger.events.budget import AccountCreated, ShareSet, Word
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact as Told
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Started,
    Submitted,
)
from gpuledger.simulator.scenario import HostSpec, Scenario

_REASONS: Mapping[Departure, str] = {
    Departure.DONE: "completed",
    Departure.PREEMPTED: "preempted",
    Departure.HOST_FAILED: "node_fail",
    Departure.TIME_LIMIT: "timeout",
}
_BY = "simulator"


class Journal:
    """Writes events, each one line of JSON that ends with a line feed.

    Args:
        scenario: What is simulated.
        world: Which world decides.
        seed: What chance is drawn from.
    """

    def __init__(self, scenario: Scenario, *, world: str, seed: int) -> None:
        self._cluster = scenario.cluster
        self._start_s = scenario.start_s
        self._accounts = scenario.accounts
        self._hosts = {spec.host: spec for spec in scenario.hosts}
        self._source = f"simulator/{scenario.name}/{world}/{seed}"
        self._started: dict[str, int] = {}
        self._saves: dict[str, int] = {}
        """How long jobs that are not over work between two checkpoints."""
        self._number = 0

    def opening(self) -> Iterator[bytes]:
        """Yield what is so from the beginning: accounts, their shares, hosts."""
        for spec in self._accounts:
            yield self._line(
                self._start_s, AccountCreated(account=spec.account, by=_BY, reason=Word.BUDGET_FILE)
            )
            share = ShareSet(account=spec.account, share=spec.share, reason=Word.BUDGET_FILE, by=_BY)
            yield self._line(self._start_s, share)
        for host in self._hosts.values():
            yield self._line(self._start_s, self._registered(host))

    def lines(self, fact: Fact) -> Iterator[bytes]:
        """Yield what a ledger is told of a fact; nothing of what it finds out itself."""
        match fact:
            case Submitted():
                if fact.job.checkpoint_s:
                    self._saves[fact.job.job] = fact.job.checkpoint_s
                yield self._line(fact.at_s, self._asked(fact))
            case Started():
                self._started[fact.job] = fact.at_s
                yield self._line(fact.at_s, self._handed_over(fact))
            case Left():
                for at_s, told in self._gone(fact):
                    yield self._line(at_s, told)
            case Cancelled():
                self._saves.pop(fact.job, None)
                ended = workload.Ended(cluster=self._cluster, workload=fact.job, reason="cancelled")
                yield self._line(fact.at_s, ended)
            case HostChanged():
                yield self._line(fact.at_s, self._changed(fact))
            case _:
                pass

    def _line(self, at_s: int, data: Told) -> bytes:
        self._number += 1
        return make(id=str(self._number), source=self._source, at_s=at_s, data=data)[1] + b"\n"

    def _registered(self, spec: HostSpec) -> hosts.Registered:
        return hosts.Registered(
            cluster=self._cluster,
            host=spec.host,
            gpus=spec.gpus_milli // GPU_MILLI,
            gpu_model=spec.gpu_model,
        )

    def _asked(self, fact: Submitted) -> workload.Submitted:
        job = fact.job
        return workload.Submitted(
            cluster=self._cluster,
            workload=job.job,
            account=job.account,
            user=job.user,
            gpus_milli=job.gpus_milli,
            gpu_model=job.gpu_model,
            minimum_runtime_s=job.minimum_runtime_s,
            time_limit_s=job.time_limit_s,
            priority=job.priority,
            kind=job.kind,
            resumable=job.resumable,
            labels=dict(job.labels) if job.labels else None,
        )

    def _handed_over(self, fact: Started) -> workload.Started:
        return workload.Started(
            cluster=self._cluster,
            workload=fact.job,
            run=str(fact.run),
            attempt=fact.run,
            gpus_milli=sum(fact.placement.values()),
            hosts=sorted(fact.placement),
            host_gpus_milli=dict(sorted(fact.placement.items())),
            klass=fact.klass,
        )

    def _gone(self, fact: Left) -> Iterator[tuple[int, Told]]:
        """Yield when its work began, was first saved and last saved, which only now is known, and that it is gone.

        Of the checkpoints in between nothing follows that does not follow from these.
        """
        cluster, job, run = self._cluster, fact.job, str(fact.run)
        ready_s = self._started.pop(job) + fact.loading_s
        if ready_s < fact.at_s:
            yield ready_s, workload.Ready(cluster=cluster, workload=job, run=run)
        for saved_s in self._saved(fact, ready_s):
            yield saved_s, workload.Checkpointed(cluster=cluster, workload=job, run=run)
        if not fact.requeued:
            self._saves.pop(job, None)
        gone: type[workload.Stopped] = workload.Ended
        if fact.requeued:
            gone = workload.Preempted if fact.why is Departure.PREEMPTED else workload.Requeued
        yield fact.at_s, gone(cluster=cluster, workload=job, run=run, reason=_REASONS[fact.why])

    def _saved(self, fact: Left, ready_s: int) -> list[int]:
        """Return when a run saved its work first, and last where that says how much is lost."""
        each_s = self._saves.get(fact.job)
        saved = set[int]()
        if each_s is not None and fact.kept_s >= each_s:
            saved.add(ready_s + each_s)
        if fact.kept_s and fact.why is not Departure.DONE:
            saved.add(fact.at_s - fact.lost_s - fact.idle_s)
        return sorted(saved)

    def _changed(self, fact: HostChanged) -> hosts.StateChanged:
        state: hosts.HostState = "healthy"
        match fact.condition:
            case HostCondition.HEALTHY:
                pass
            case HostCondition.DRAINING:
                state = "draining"
            case HostCondition.DOWN:
                state = "maintenance" if fact.planned else "unhealthy"
        spec = self._hosts[fact.host]
        return hosts.StateChanged(
            cluster=self._cluster,
            host=spec.host,
            gpus=spec.gpus_milli // GPU_MILLI,
            gpu_model=spec.gpu_model,
            state=state,
        )


__all__ = ["Journal"]
