"""Faults, the runs that they ended, and what is one incident.

Numbers: 11 and 55 are traps of schedulers, 39 is a line of the fault checklist.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gpuledger.events import host as hosts
from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import (
    NAME_LENGTH_MAX,
    WINDOW_S,
    Incident,
    RunName,
    bounded,
    closed_runs,
    host_faults,
    incidents_of,
    run_faults,
)
from gpuledger.ledger.inventory import HostFact

TEN = int(dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC).timestamp())
"""2026-03-01T10:00:00Z: when things break here."""

HOUR = 3600


def known(at_s: int, fact: events.WorkloadFact | hosts.HostFact, source: str = "test/stream") -> Known:
    return Known(fact, at_s, source, msgspec.json.encode(fact))


def health(after_s: int, state: str, host: str = "h1", **keys: Any) -> HostFact:  # noqa: ANN401
    """A host is said to be in some state, so many seconds after ten."""
    said = {"cluster": "c", "host": host, "gpus": 8, "gpu_model": "H100", **keys}
    fact = hosts.Retired(**said) if state == "retired" else hosts.StateChanged(**said, state=state)
    return HostFact(fact, known(TEN + after_s, fact))


def instant(after_s: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(TEN + after_s, dt.UTC)


def run(
    name: str,
    from_s: int,
    to_s: int | None,
    reason: str = "failed",
    *,
    on: Sequence[str] = ("h1",),
    stop: type[events.Stopped] = events.Ended,
    gpu_uuids: list[str] | None = None,
) -> list[Known]:
    """A run ``workload/run`` on hosts, from and to so many seconds after ten."""
    workload, _, number = name.partition("/")
    named = {"cluster": "c", "workload": workload, "run": number}
    started = events.Started(**named, attempt=1, gpus_milli=8000, hosts=list(on), gpu_uuids=gpu_uuids)
    facts = [known(TEN + from_s, started)]
    return facts if to_s is None else [*facts, known(TEN + to_s, stop(**named, reason=reason))]


def found(host_facts: Sequence[HostFact], *runs: Sequence[Known]) -> list[Incident]:
    return incidents_of("c", host_facts, [fact for of_one in runs for fact in of_one])


def lost(host_facts: Sequence[HostFact], *runs: Sequence[Known]) -> list[list[str]]:
    """Return the runs of each incident."""
    return [[str(name) for name in incident.runs] for incident in found(host_facts, *runs)]


BROKEN = [health(0, "unhealthy", reason="xid-79")]


def test_a_broken_host_and_the_run_that_it_ended_are_an_incident() -> None:
    assert found(BROKEN, run("w/1", -HOUR, 30)) == [
        Incident(
            cluster="c",
            incident="h1@2026-03-01T10:00:00Z",
            host="h1",
            fault="xid-79",
            gpu_uuids=None,
            noticed_s=TEN,
            runs=(RunName("w", "1"),),
        )
    ]


ONE_RUN = [
    ("failed in the window", run("w/1", -HOUR, 30), [["w/1"]]),
    ("stopped at the very moment", run("w/1", -HOUR, 0), [["w/1"]]),
    ("stopped as the window ends", run("w/1", -HOUR, WINDOW_S), [["w/1"]]),
    ("stopped after the window", run("w/1", -HOUR, WINDOW_S + 1), []),
    ("stopped before the fault", run("w/1", -HOUR, -1), []),
    ("goes on", run("w/1", -HOUR, None), []),
    ("succeeded at the moment of the fault", run("w/1", -HOUR, 0, "completed"), []),
    ("was cancelled by its user", run("w/1", -HOUR, 30, "CANCELLED by 1001"), []),
    ("reached its time limit", run("w/1", -HOUR, 30, "timeout"), []),
    ("went for other work", run("w/1", -HOUR, 30, "PREEMPTED", stop=events.Preempted), []),
    ("was taken off the host", run("w/1", -HOUR, 30, "drained", stop=events.Preempted), [["w/1"]]),
    ("was requeued", run("w/1", -HOUR, 30, "NODE_FAIL", stop=events.Requeued), [["w/1"]]),
    ("began after the fault", run("w/1", 10, 30), []),
    ("was elsewhere", run("w/1", -HOUR, 30, on=("h2",)), []),
    ("was on that host too", run("w/1", -HOUR, 30, on=("h2", "h1")), [["w/1"]]),
    ("held nothing", run("w/1", 0, 0), []),
]


@pytest.mark.parametrize(("what", "facts", "expected"), ONE_RUN, ids=[case[0] for case in ONE_RUN])
def test_a_run_is_lost_to_a_fault_of_its_host_if_it(
    what: str, facts: list[Known], expected: list[list[str]]
) -> None:
    assert lost(BROKEN, facts) == expected


NODE_FAIL = run("w/1", -HOUR, 0, "NODE_FAIL")


def test_11_the_reason_of_a_stop_is_evidence_enough_and_is_noticed_with_the_stop() -> None:
    (incident,) = found([], NODE_FAIL)
    assert (incident.incident, incident.host, incident.fault) == (
        "h1@2026-03-01T10:00:00Z",
        "h1",
        "node_fail",
    )
    assert incident.noticed_s == TEN


def test_11_the_controller_and_the_monitor_that_notice_at_different_times_mean_one_incident() -> None:
    late = health(240, "unhealthy", reason="not-responding", evidence_at=instant(-300))
    (incident,) = found([late], NODE_FAIL)
    assert (incident.incident, incident.fault) == ("h1@2026-03-01T09:55:00Z", "not-responding")
    assert incident.noticed_s == TEN


def test_a_run_that_died_between_evidence_and_notice_was_lost() -> None:
    noticed = health(1800, "unhealthy", reason="xid-79", evidence_at=instant(0))
    assert lost([noticed], run("w/1", -HOUR, 20)) == [["w/1"]]
    assert lost([noticed], run("w/1", -HOUR, 1900)) == [["w/1"]]
    assert lost([noticed], run("w/1", -HOUR, 1500)) == []


def test_evidence_from_after_the_notice_is_a_wrong_clock() -> None:
    (fault,) = host_faults([health(0, "unhealthy", evidence_at=instant(500))])
    assert (fault.evidence_s, fault.noticed_s) == (TEN, TEN)


STICKY = [health(60 * minute, "unhealthy", reason="xid-79") for minute in range(600)]


def test_39_a_sticky_fault_told_again_is_the_same_fault() -> None:
    assert len(host_faults(STICKY)) == 1
    assert lost(STICKY, run("w/1", -HOUR, 30), run("x/1", HOUR, 2 * HOUR)) == [["w/1"]]


AGAIN = [
    ("it had recovered", [health(HOUR, "healthy"), health(2 * HOUR, "unhealthy", reason="xid-79")], 2),
    ("of another kind", [health(2 * HOUR, "unhealthy", reason="xid-48")], 2),
    ("of another device", [health(2 * HOUR, "unhealthy", reason="xid-79", gpu_uuids=["g2"])], 2),
    ("with new evidence", [health(7200, "unhealthy", reason="xid-79", evidence_at=instant(7190))], 2),
    ("with the same evidence", [health(7200, "unhealthy", reason="xid-79", evidence_at=instant(0))], 1),
    (
        "while it is drained",
        [health(HOUR, "draining"), health(2 * HOUR, "unhealthy", reason="xid-79")],
        1,
    ),
]


@pytest.mark.parametrize(("what", "more", "expected"), AGAIN, ids=[case[0] for case in AGAIN])
def test_39_a_second_fault_is_not_hidden_by_the_first(what: str, more: list[HostFact], expected: int) -> None:
    assert len(host_faults([*BROKEN, *more])) == expected


def test_39_two_faults_of_a_host_a_day_apart_are_two_incidents() -> None:
    again = [*BROKEN, health(HOUR, "healthy"), health(24 * HOUR, "unhealthy", reason="xid-79")]
    runs = (run("w/1", -HOUR, 30), run("w/2", 2 * HOUR, 24 * HOUR + 30))
    assert [(i.incident, [str(r) for r in i.runs]) for i in found(again, *runs)] == [
        ("h1@2026-03-01T10:00:00Z", ["w/1"]),
        ("h1@2026-03-02T10:00:00Z", ["w/2"]),
    ]


def test_two_faults_of_one_host_within_the_window_are_one_incident() -> None:
    two = [*BROKEN, health(WINDOW_S, "unhealthy", reason="xid-48")]
    runs = (run("w/1", -HOUR, 30), run("x/1", -HOUR, WINDOW_S + 30))
    (incident,) = found(two, *runs)
    assert (incident.fault, [str(r) for r in incident.runs]) == ("xid-79", ["w/1", "x/1"])


def test_faults_of_two_hosts_that_ended_one_run_are_one_incident() -> None:
    two = [*BROKEN, health(60, "unhealthy", "h2", reason="xid-79")]
    gang, own = run("w/1", -HOUR, 90, on=("h1", "h2")), run("x/1", -HOUR, 90, on=("h2",))
    (incident,) = found(two, gang, own)
    assert (incident.host, [str(r) for r in incident.runs]) == ("h1", ["w/1", "x/1"])


def test_faults_of_two_hosts_that_share_no_run_are_two_incidents() -> None:
    two = [*BROKEN, health(60, "unhealthy", "h2", reason="xid-79")]
    assert lost(two, run("w/1", -HOUR, 90), run("x/1", -HOUR, 90, on=("h2",))) == [["w/1"], ["x/1"]]


def test_a_run_of_many_hosts_tells_that_one_failed_and_the_host_tells_which() -> None:
    gang = run("w/1", -HOUR, 0, "NODE_FAIL", on=("h1", "h2", "h3"))
    beside = run("x/1", -HOUR, 30, on=("h1",))
    (incident,) = found([], gang, beside)
    assert (incident.host, [str(r) for r in incident.runs]) == ("h1", ["w/1"])
    (incident,) = found([health(120, "unhealthy", "h3")], gang, beside)
    assert (incident.host, incident.fault, [str(r) for r in incident.runs]) == ("h3", "unhealthy", ["w/1"])


def test_of_many_hosts_the_one_that_most_runs_name_failed() -> None:
    gangs = [run(f"w{n}/1", -HOUR, n, "NODE_FAIL", on=("h1", f"h{n}", "h9")) for n in (2, 3)]
    others = run("x/1", -HOUR, 5, "NODE_FAIL", on=("h9",))
    (incident,) = found([], *gangs, others)
    assert (incident.host, len(incident.runs)) == ("h9", 3)


def test_runs_that_name_no_host_are_lost_each_with_its_siblings() -> None:
    facts = [run("w/1", -HOUR, 0, "NodeLost", on=()), run("w/2", -HOUR, 5, "failed", on=())]
    other = run("x/1", -HOUR, 0, "NodeLost", on=())
    assert [(i.incident, len(i.runs)) for i in found([], *facts, other)] == [
        ("-/w@2026-03-01T10:00:00Z", 2),
        ("-/x@2026-03-01T10:00:00Z", 1),
    ]


GANG = [run(f"w/{n}", -HOUR, 40, "cancelled", on=(f"h{n}",)) for n in range(2, 65)]


def test_55_a_gang_loses_all_its_members_in_one_incident() -> None:
    (incident,) = found([], NODE_FAIL, *GANG)
    assert len(incident.runs) == 64
    assert incident.host == "h1"


SIBLINGS = [
    ("failed too", run("w/2", -HOUR, 300, on=("h2",)), True),
    ("was cancelled, as the controller does", run("w/2", -HOUR, 300, "cancelled", on=("h2",)), True),
    ("had finished", run("w/2", -HOUR, 300, "completed", on=("h2",)), False),
    ("stopped after the window", run("w/2", -HOUR, WINDOW_S + 1, on=("h2",)), False),
    ("stopped before", run("w/2", -HOUR, -5, on=("h2",)), False),
    ("goes on", run("w/2", -HOUR, None, on=("h2",)), False),
    ("is the next attempt", run("w/2", 0, 90, on=("h2",)), False),
    ("is of another workload", run("x/2", -HOUR, 300, on=("h2",)), False),
]


@pytest.mark.parametrize(("what", "facts", "too"), SIBLINGS, ids=[case[0] for case in SIBLINGS])
def test_55_a_sibling_is_lost_with_the_run_if_it(what: str, facts: list[Known], *, too: bool) -> None:
    ((*runs,),) = lost([], NODE_FAIL, facts)
    assert runs == (["w/1", "w/2"] if too else ["w/1"])


def test_a_host_that_is_taken_out_under_a_run_ends_it() -> None:
    (incident,) = found([health(0, "retired")], run("w/1", -HOUR, 30))
    assert incident.fault == "retired"
    assert len(host_faults([health(0, "retired"), health(HOUR, "retired")])) == 1


DEVICES = [
    ("the run had it", ["g1"], ["g1", "g2"], True),
    ("the run had others", ["g1"], ["g2"], False),
    ("nobody knows what the run had", ["g1"], None, True),
    ("all of the host", [f"g{n}" for n in range(8)], ["x"], True),
]


@pytest.mark.parametrize(("what", "broken", "held", "hit"), DEVICES, ids=[case[0] for case in DEVICES])
def test_a_fault_of_some_devices_ends_the_runs_that_had_them(
    what: str, broken: list[str], held: list[str] | None, *, hit: bool
) -> None:
    fault = health(0, "unhealthy", reason="xid-79", gpu_uuids=broken)
    assert bool(lost([fault], run("w/1", -HOUR, 30, gpu_uuids=held))) is hit


def test_the_devices_are_named_when_it_was_not_the_whole_host() -> None:
    one = health(0, "unhealthy", gpu_uuids=["g2", "g1"])
    (incident,) = found([one], run("w/1", -HOUR, 30))
    assert incident.gpu_uuids == ("g1", "g2")
    (incident,) = found([one], NODE_FAIL)
    assert incident.gpu_uuids is None


def test_a_run_that_moved_is_lost_to_the_host_it_was_on_then() -> None:
    moved = known(
        TEN - 60, events.Resized(cluster="c", workload="w", run="1", gpus_milli=16_000, hosts=["h2"])
    )
    facts = [*run("w/1", -HOUR, 30, gpu_uuids=["g1"]), moved]
    assert lost(BROKEN, facts) == []
    assert lost([health(0, "unhealthy", "h2", gpu_uuids=["g9"])], facts) == [["w/1"]]
    ((first, second),) = [run_.stays for run_ in closed_runs(facts)]
    assert (first.to_s, second.from_s, second.hosts) == (TEN - 60, TEN - 60, ("h2",))


def test_the_stop_that_counts_decides() -> None:
    """A reconciliation that says that the run completed takes the fault away."""
    truth = events.Ended(cluster="c", workload="w", run="1", reason="completed")
    assert run_faults(closed_runs(NODE_FAIL)) != []
    assert run_faults(closed_runs([*NODE_FAIL, known(TEN, truth, "reconcile/sacct")])) == []


def test_a_run_that_was_resized_and_goes_on_is_not_closed() -> None:
    grown = events.Resized(cluster="c", workload="w", run="1", gpus_milli=16_000, hosts=["h1"])
    assert closed_runs([*run("w/1", -HOUR, None), known(TEN, grown)]) == []


def test_a_name_that_is_too_long_is_cut_and_stays_its_own() -> None:
    one, other = ("h" * 2000 + end for end in "ab")
    assert bounded("h1") == "h1"
    assert len(bounded(one)) == NAME_LENGTH_MAX
    assert bounded(one) != bounded(other)
