"""Semantics traps of schedulers about failed hosts, each with its number in the list of traps.

Facts are told in the order given and in the reverse order, because order of arrival must not matter.
"""

import datetime as dt
from collections.abc import Sequence

import msgspec

from gpuledger.events import host as hosts
from gpuledger.events import workload as events
from gpuledger.ledger.facts import Known
from gpuledger.ledger.faults import Incident, host_faults, incidents_of
from gpuledger.ledger.inventory import HostFact
from gpuledger.ledger.segments import derive

FAILED_AT = dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC)
NOTICED_S = int(FAILED_AT.timestamp()) + 300
"""Five minutes after the node fell silent, as SlurmdTimeout is by default."""


def task(number: int, reason: str, node: str, end_s: int) -> list[Known]:
    """One of the tasks of a job, each on eight GPUs of a node of its own, for an hour."""
    named = {"cluster": "c", "workload": "job", "run": str(number)}
    started = events.Started(**named, attempt=1, gpus_milli=8000, hosts=[node])
    ended = events.Ended(**named, reason=reason)
    return [known(end_s - 3600, started), known(end_s, ended)]


def known(at_s: int, fact: msgspec.Struct) -> Known:
    return Known(fact, at_s, "slurm/jobcomp", msgspec.json.encode(fact))


def told(at_s: int, fact: hosts.HostFact) -> HostFact:
    return HostFact(fact, known(at_s, fact))


def incidents(facts: Sequence[Known], host_facts: Sequence[HostFact] = ()) -> list[Incident]:
    found = incidents_of("c", host_facts, facts)
    assert incidents_of("c", host_facts[::-1], facts[::-1]) == found
    return found


def test_11_a_run_is_charged_until_the_failure_of_its_node_is_noticed_and_credited_from_there_back() -> None:
    facts = task(1, "NODE_FAIL", "node7", NOTICED_S)
    (segment,) = derive(facts).segments
    assert (segment.klass, segment.from_s, segment.to_s) == ("allocated", NOTICED_S - 3600, NOTICED_S)
    (incident,) = incidents(facts)
    assert (incident.noticed_s, incident.fault) == (NOTICED_S, "node_fail")


def test_46_a_gauge_that_sticks_is_one_fault_and_a_second_identical_error_another() -> None:
    broken = {"cluster": "c", "host": "node7", "gpus": 8, "gpu_model": "H100", "reason": "xid-79"}
    sticky = [
        told(NOTICED_S + 15 * n, hosts.StateChanged(**broken, state="unhealthy", evidence_at=FAILED_AT))
        for n in range(100)
    ]
    assert len(host_faults(sticky)) == 1
    again = hosts.StateChanged(**broken, state="unhealthy", evidence_at=FAILED_AT + dt.timedelta(hours=2))
    assert len(host_faults([*sticky, told(NOTICED_S + 7200, again)])) == 2


def test_55_one_node_fails_and_63_tasks_are_cancelled_in_one_incident_each_once() -> None:
    facts = task(0, "NODE_FAIL", "node0", NOTICED_S)
    for number in range(1, 64):
        facts += task(number, "CANCELLED by 0", f"node{number}", NOTICED_S + 1)
    (incident,) = incidents(facts)
    assert (incident.host, len(incident.runs), len(set(incident.runs))) == ("node0", 64, 64)
    (again,) = incidents([*facts, *facts])
    assert again == incident
