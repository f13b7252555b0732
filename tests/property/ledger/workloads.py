"""Random facts about workloads, and the events and known facts that say the same to the product."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from tests.property.ledger.oracle import STOPS, Fact, standing

from gpuledger.events import workload as events
from gpuledger.events.envelope import Event, make
from gpuledger.ledger.facts import Known


def _at(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp())


MOMENTS = (
    ("UTC", _at("2017-10-31T00:00:00Z")),
    ("America/Los_Angeles", _at("2017-10-30T12:00:00Z")),
    ("America/Los_Angeles", _at("2017-11-04T12:00:00Z")),  # clocks go back
    ("Europe/Berlin", _at("2017-03-25T12:00:00Z")),  # clocks go forward
    ("Europe/Berlin", _at("2017-10-28T12:00:00Z")),
    ("Asia/Kathmandu", _at("2017-12-30T12:00:00Z")),  # +05:45
    ("Australia/Lord_Howe", _at("2017-04-01T00:00:00Z")),  # by half an hour
    ("America/Sao_Paulo", _at("2017-10-14T12:00:00Z")),  # a day without midnight
    ("Pacific/Apia", _at("2011-12-29T00:00:00Z")),  # a day that never was
    ("UTC", _at("2016-02-28T12:00:00Z")),  # a leap day
)
"""Zones, and instants around which their days are odd."""

SPAN_S = 3 * 86_400
ACCOUNTS = ("org/a", "org/b", "org/c/d")
USERS = ("ada", "grace", "zoë")

offsets = st.one_of(
    st.integers(0, SPAN_S), st.integers(0, SPAN_S // 900).map(lambda n: n * 900), st.integers(0, 5)
)
sources = st.sampled_from(["test/stream", "test/stream", "reconcile/nightly"])
gpus = st.sampled_from([0, 142, 250, 1000, 3000, 8000, 64_000])
classes = st.sampled_from(["allocated", "unallocated"])


def _claims(details: st.SearchStrategy[dict[str, Any]], *kinds: str) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.sampled_from(kinds), offsets, sources, details)


reasons = st.fixed_dictionaries(
    {"reason": st.sampled_from(["x", "y"])}, optional={"estimated": st.booleans()}
)
submissions = _claims(
    st.fixed_dictionaries(
        {"account": st.sampled_from(ACCOUNTS), "user": st.sampled_from(USERS), "gpus_milli": gpus},
        optional={
            "minimum_runtime_s": st.sampled_from([0, 60, 28_800]),
            "time_limit_s": st.sampled_from([60, 7_200, 86_400]),
            "eligible_s": offsets,
        },
    ),
    "submitted",
)
updates = _claims(
    st.fixed_dictionaries(
        {},
        optional={
            "account": st.sampled_from(ACCOUNTS),
            "gpus_milli": gpus,
            "minimum_runtime_s": st.sampled_from([0, 60, 28_800]),
            "time_limit_s": st.sampled_from([0, 60, 7_200, 86_400]),
            "priority": st.sampled_from([-1, 0, 5]),
            "eligible_s": offsets,
        },
    ),
    "updated",
)
starts = _claims(
    st.fixed_dictionaries(
        {"gpus_milli": gpus},
        optional={"account": st.sampled_from(ACCOUNTS), "class": classes, "user": st.sampled_from(USERS)},
    ),
    "started",
)
changes = st.one_of(
    _claims(st.fixed_dictionaries({"gpus_milli": gpus}), "resized"),
    _claims(st.fixed_dictionaries({"class": classes}), "class_changed"),
    _claims(st.just({}), "suspended", "resumed"),
)
stops = _claims(reasons, *STOPS)
run_claims = st.tuples(
    st.lists(starts, max_size=2), st.lists(changes, max_size=4), st.lists(stops, max_size=2)
)
workload_claims = st.tuples(
    st.lists(submissions, max_size=2),
    st.lists(updates, max_size=3),
    st.lists(run_claims, max_size=3),
    st.lists(_claims(reasons, "ended"), max_size=1),
)


def _history(workload: str, base_s: int, claims: tuple[Any, ...]) -> list[Fact]:
    """Return the facts of one workload: contradictions, gaps and ends before starts included."""
    submitted, updated, runs, over = claims
    told = [(None, claim) for claim in (*submitted, *updated, *over)]
    told += [(f"r{number}", claim) for number, run in enumerate(runs) for kind in run for claim in kind]
    facts = []
    for run, (kind, offset_s, source, details) in told:
        absolute = {key: base_s + value if key == "eligible_s" else value for key, value in details.items()}
        facts.append(Fact(kind, base_s + offset_s, source, workload, run, absolute))
    return facts


def worlds(max_workloads: int = 3, *, ties: bool = False) -> st.SearchStrategy[tuple[str, list[Fact]]]:
    """Draw a zone and the facts of some workloads; without ``ties`` the oracle can rank all of them."""

    def built(drawn: tuple[tuple[str, int], list[tuple[Any, ...]]]) -> tuple[str, list[Fact]]:
        (zone, base_s), workloads = drawn
        facts = [f for number, claims in enumerate(workloads) for f in _history(f"w{number}", base_s, claims)]
        return zone, facts if ties else distinct(facts)

    several = st.lists(workload_claims, min_size=1, max_size=max_workloads)
    return st.tuples(st.sampled_from(MOMENTS), several).map(built)


def distinct(facts: Sequence[Fact]) -> list[Fact]:
    """Keep one of the facts that only their digest could rank."""
    kept: dict[object, Fact] = {}
    for fact in facts:
        kind = "stop" if fact.kind in STOPS else fact.kind
        kept.setdefault((fact.workload, fact.run, kind, standing(fact)), fact)
    return list(kept.values())


def event_of(number: int, fact: Fact, cluster: str) -> Event:
    """Return the event that tells the fact; its id is the fact's place in the drawn list."""
    return make(id=f"e{number}", source=fact.source, at_s=fact.at_s, data=_data(fact, cluster))[0]


def known_of(number: int, fact: Fact) -> Known:
    """Return the fact as the ledger's pure core knows it."""
    event = event_of(number, fact, "c")
    return Known(event.data, event.at_s, event.source, event.digest)


def _data(fact: Fact, cluster: str) -> events.WorkloadFact:
    named: dict[str, Any] = {"cluster": cluster, "workload": fact.workload}
    if fact.run is not None:
        named["run"] = fact.run
    details = dict(fact.details)
    klass = details.pop("class", None)
    match fact.kind:
        case "submitted" | "updated" as kind:
            eligible_s = details.pop("eligible_s", None)
            eligible_at = None if eligible_s is None else dt.datetime.fromtimestamp(eligible_s, dt.UTC)
            asking = events.Submitted if kind == "submitted" else events.Updated
            return asking(**named, **details, eligible_at=eligible_at)
        case "started":
            return events.Started(**named, **details, attempt=1, hosts=["h1"], klass=klass)
        case "resized":
            return events.Resized(**named, **details, hosts=["h1"])
        case "class_changed":
            return events.ClassChanged(**named, klass=klass, reason="policy")
        case "suspended":
            return events.Suspended(**named)
        case "resumed":
            return events.Resumed(**named)
        case "preempted":
            return events.Preempted(**named, **details)
        case "requeued":
            return events.Requeued(**named, **details)
        case _:
            return events.Ended(**named, **details)
