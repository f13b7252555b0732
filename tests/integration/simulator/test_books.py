"""The simulator's books and a real ledger that is told the same story tell a cycle the same."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from tests.simulated_story import ACCOUNTS, CAP_S, HOSTS, HOUR_S, START_S, Story

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import host, workload
from gpuledger.events.budget import AccountCreated, ShareSet
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import Event, make
from gpuledger.events.registry import Fact as Told
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger import incidents
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.state import ClusterState, PolicyConfig
from gpuledger.simulator.books import Books
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
from gpuledger.simulator.jobs import Job

CLUSTER = "c"
DAYS = 2
CLOCK = FixedClock(datetime(2027, 2, 1, tzinfo=UTC))
WINDOW = PolicyConfig(window_s=18 * HOUR_S, protection_cap_s=CAP_S)
"""A burst is forgotten within the story."""
FADING = PolicyConfig(mode="half-life", half_life_s=6 * HOUR_S, protection_cap_s=CAP_S)
DIVIDED = PolicyConfig(division="credits", protection_cap_s=CAP_S)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("config", "seed"),
    [(WINDOW, 1), (WINDOW, 2), (FADING, 1), (DIVIDED, 2)],
    ids=lambda given: str(given)[:30],
)
def test_books_say_what_a_ledger_says(engine: sa.Engine, config: PolicyConfig, seed: int) -> None:
    """Runs that ended, were preempted, failed with their host and wait again; hosts that come and go; newcomers."""
    intake = Intake(engine, CLOCK, Calendar())
    intake.take(list(_installed()))
    books = Books(CLUSTER, HOSTS, ACCOUNTS, config, START_S)
    story, jobs = Story(random.Random(seed)), dict[str, Job]()
    failed, looks, reserved = 0, 0, 0
    for until_s in range(START_S + 4 * HOUR_S, START_S + DAYS * 86_400, 4 * HOUR_S):
        facts = list(story.facts(until_s))
        intake.take([event for number, fact in enumerate(facts) for event in _events(fact, number, jobs)])
        failed += _credit(engine)
        for fact in facts:
            books.told(fact)
        found = books.state(until_s)
        if found is None:
            continue
        with reading(engine) as reader:
            expected = read_state(reader, CLUSTER, until_s, config)
        assert _in_order(found) == _in_order(expected)
        cycle = run_cycle(expected, config)
        with writing(engine) as writer:
            record(writer, Decided.of(expected, config, {}, cycle), clock=CLOCK, calendar=Calendar())
        books.decided(cycle)
        reserved += len(cycle.reservations)
        looks += 1
    assert looks > 8
    assert failed
    assert reserved


def _installed() -> Iterator[Event]:
    for spec in HOSTS:
        fact = host.Registered(
            cluster=CLUSTER, host=spec.host, gpus=spec.gpus_milli // 1000, gpu_model=spec.gpu_model
        )
        yield _event(f"{spec.host}/registered", START_S, fact)
    for account in ACCOUNTS:
        name, before_s = account.account, START_S - 30 * 86_400
        yield _event(f"{name}/created", before_s, AccountCreated(account=name))
        share = ShareSet(account=name, share=account.share, reason="test", by="test")
        yield _event(f"{name}/share", before_s, share)


def _events(fact: Fact, number: int, jobs: dict[str, Job]) -> Iterator[Event]:
    """Tell a fact of a simulation to a ledger, as a scheduler that takes the policy's decisions would."""
    name = f"{fact.at_s}/{number}"
    match fact:
        case Submitted(job=job):
            jobs[job.job] = job
            yield _event(name, fact.at_s, _asked(job))
        case Cancelled(job=job):
            yield _event(name, fact.at_s, workload.Ended(cluster=CLUSTER, workload=job, reason="cancelled"))
        case Started():
            for kind, said in (("decision", _decided(fact, jobs)), ("start", _handed_over(fact))):
                yield _event(f"{name}/{kind}", fact.at_s, said)
        case Left():
            if fact.kept_s:
                saved_s = fact.at_s - fact.lost_s - fact.idle_s
                saved = workload.Checkpointed(cluster=CLUSTER, workload=fact.job, run=str(fact.run))
                yield _event(f"{name}/saved", saved_s, saved)
            yield _event(name, fact.at_s, _gone(fact))
        case HostChanged(host=which, condition=condition):
            state = {HostCondition.DOWN: "unhealthy"}.get(condition, condition.value)
            model = next(spec.gpu_model for spec in HOSTS if spec.host == which)
            changed = host.StateChanged(
                cluster=CLUSTER, host=which, gpus=8, gpu_model=model, state=state  # type: ignore[arg-type]
            )  # fmt: skip
            yield _event(name, fact.at_s, changed)
        case _:
            pass


def _asked(job: Job) -> workload.Submitted:
    return workload.Submitted(
        cluster=CLUSTER,
        workload=job.job,
        account=job.account,
        user=job.user,
        gpus_milli=job.gpus_milli,
        gpu_model=job.gpu_model,
        minimum_runtime_s=job.minimum_runtime_s,
        priority=job.priority,
    )


def _decided(fact: Started, jobs: dict[str, Job]) -> DecisionMade:
    gpus_milli = sum(fact.placement.values())
    return DecisionMade(
        cluster=CLUSTER,
        workload=fact.job,
        attempt=fact.run,
        klass=fact.klass,
        account=jobs[fact.job].account,
        gpus_milli=gpus_milli,
        hold_gpu_ms=gpus_milli * fact.protected_s,
        reason="test",
    )


def _handed_over(fact: Started) -> workload.Started:
    return workload.Started(
        cluster=CLUSTER,
        workload=fact.job,
        run=str(fact.run),
        attempt=fact.run,
        gpus_milli=sum(fact.placement.values()),
        hosts=sorted(fact.placement),
        host_gpus_milli=dict(fact.placement),
        klass=fact.klass,
    )


def _gone(fact: Left) -> workload.Stopped:
    reason = {Departure.HOST_FAILED: "NODE_FAIL", Departure.PREEMPTED: "preempted"}.get(fact.why, "completed")
    kind = workload.Requeued if fact.requeued else workload.Ended
    return kind(cluster=CLUSTER, workload=fact.job, run=str(fact.run), reason=reason)


def _event(name: str, at_s: int, data: Told) -> Event:
    return make(id=name, source="test", at_s=at_s, data=data)[0]


def _credit(engine: sa.Engine) -> int:
    """Look for hosts that failed; return how many runs were credited."""
    with writing(engine) as writer:
        found = incidents.credit(
            writer, CLUSTER, from_s=START_S, to_s=START_S + DAYS * 86_400, clock=CLOCK, calendar=Calendar()
        )
    return sum(len(proposal.fresh) for proposal in found.proposals)


def _in_order(state: ClusterState) -> ClusterState:
    return replace(
        state,
        running=tuple(sorted(state.running, key=lambda run: run.id)),
        pending=tuple(sorted(state.pending, key=lambda waits: waits.workload)),
    )
