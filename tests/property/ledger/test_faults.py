"""Incidents are a function of the set of facts, and each run is in one of them at most."""

import random
from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events import host as hosts
from gpuledger.events import workload as events
from gpuledger.kernel.clock import instant
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import Incident, closed_runs, incidents_of
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.stops import Stop, why

NAMES = ("h1", "h2", "h3")
REASONS = ("completed", "failed", "cancelled", "NODE_FAIL", "NodeLost", "timeout")
moments = st.one_of(st.integers(0, 6 * 3600), st.integers(0, 40).map(lambda n: n * 300))


def _known(at_s: int, source: str, fact: Any) -> Known:  # noqa: ANN401
    return Known(fact, at_s, source, msgspec.json.encode(fact))


@st.composite
def host_facts(draw: st.DrawFn) -> HostFact:
    at_s = draw(moments)
    keys = {
        "cluster": "c",
        "host": draw(st.sampled_from(NAMES)),
        "gpus": 8,
        "gpu_model": "H100",
        "gpu_uuids": draw(st.sampled_from([None, ["g1"], ["g1", "g2"]])),
        "evidence_at": draw(st.none() | moments.map(instant)),
        "reason": draw(st.sampled_from([None, "xid-79", "xid-48"])),
    }
    kind = draw(st.sampled_from([hosts.Retired, hosts.Registered, hosts.StateChanged]))
    state = draw(st.sampled_from(["unhealthy", "unhealthy", "healthy", "draining"]))
    fact = kind(**keys, state=None if kind is hosts.Retired else state)
    return HostFact(fact, _known(at_s, "test/monitor", fact))


@st.composite
def runs(draw: st.DrawFn) -> list[Known]:
    """The facts of one run: contradictory stops, moves and missing ends included."""
    named = {
        "cluster": "c",
        "workload": draw(st.sampled_from(["w", "x"])),
        "run": str(draw(st.integers(1, 4))),
    }
    where = st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
    uuids = draw(st.sampled_from([None, ["g1"], ["g3"]]))
    started = events.Started(**named, attempt=1, gpus_milli=8000, hosts=draw(where), gpu_uuids=uuids)
    facts = [_known(draw(moments), "test/stream", started)]
    for kind in draw(
        st.lists(st.sampled_from([events.Ended, events.Preempted, events.Requeued]), max_size=2)
    ):
        source = draw(st.sampled_from(["test/stream", "reconcile/nightly"]))
        facts.append(_known(draw(moments), source, kind(**named, reason=draw(st.sampled_from(REASONS)))))
    if draw(st.booleans()):
        moved = events.Resized(**named, gpus_milli=4000, hosts=draw(where))
        facts.append(_known(draw(moments), "test/stream", moved))
    return facts


worlds = st.tuples(
    st.lists(host_facts(), max_size=6),
    st.lists(runs(), max_size=6).map(lambda found: [fact for of_one in found for fact in of_one]),
)


@given(worlds, st.randoms(use_true_random=False))
def test_any_order_and_repetition_of_the_facts_gives_the_same_incidents(
    world: tuple[list[HostFact], list[Known]], chance: random.Random
) -> None:
    of_hosts, of_runs = world
    told_hosts = [*of_hosts, *(fact for fact in of_hosts if chance.random() < 0.5)]
    told_runs = [*of_runs, *(fact for fact in of_runs if chance.random() < 0.5)]
    chance.shuffle(told_hosts)
    chance.shuffle(told_runs)
    assert incidents_of("c", told_hosts, told_runs) == incidents_of("c", of_hosts, of_runs)


@given(worlds)
def test_each_run_is_in_one_incident_at_most_and_each_incident_has_an_id_of_its_own(
    world: tuple[list[HostFact], list[Known]],
) -> None:
    found = incidents_of("c", *world)
    assert [name for name, count in Counter(r for i in found for r in i.runs).items() if count > 1] == []
    assert len({incident.incident for incident in found}) == len(found)
    assert all(incident.runs for incident in found)


@given(worlds)
def test_only_runs_that_stopped_otherwise_than_they_were_meant_to_are_in_incidents(
    world: tuple[list[HostFact], list[Known]],
) -> None:
    closed = {run.name: run for run in closed_runs(world[1])}
    for incident in incidents_of("c", *world):
        reasons = {why(closed[name].reason) for name in incident.runs}
        assert Stop.ORDINARY not in reasons
        assert reasons & {Stop.NODE_FAILURE, Stop.FAILURE}, "a sibling needs a run that was lost"


@given(worlds)
def test_every_run_that_says_that_its_node_failed_is_in_an_incident(
    world: tuple[list[HostFact], list[Known]],
) -> None:
    failed = {run.name for run in closed_runs(world[1]) if why(run.reason) is Stop.NODE_FAILURE}
    found: list[Incident] = incidents_of("c", *world)
    assert failed <= {name for incident in found for name in incident.runs}
