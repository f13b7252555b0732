"""Incidents in a book: found again and again, credited once, known better later, reversed for good."""

import threading
from collections.abc import Callable

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, ended, started, told
from tests.integration.ledger.failures import (
    FROM_S,
    INCIDENT,
    TEN,
    TO_S,
    broken,
    credited,
    failed,
    found,
    reversed_,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import Event
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.faults import RunName
from gpuledger.ledger.incidents import Credited, propose, reverse


def journalled(ledger: Ledger) -> list[tuple[str, str]]:
    """Return (type, id) of what the search wrote, in sequence."""
    return [
        (type_, event_id)
        for type_, event_id in ledger.rows(
            "SELECT type, event_id FROM ledger.journal WHERE source = 'gpuledger/incidents' ORDER BY seq"
        )
    ]


FIRST = [("incident.found", INCIDENT), ("credit.granted", f"{INCIDENT}/w1/r1")]


def test_an_incident_and_its_credits_are_facts_of_the_moment_when_it_was_noticed(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    assert credited(ledger).seq == 6
    assert journalled(ledger) == FIRST
    rows = ledger.rows(
        "SELECT effective_at, workload, run, body::text FROM ledger.journal WHERE source = 'gpuledger/incidents'"
        " ORDER BY seq"
    )
    assert {at_.timestamp() for at_, *_ in rows} == {TEN}
    assert [(workload_, run) for _, workload_, run, _ in rows] == [(None, None), ("w1", "r1")]
    assert '"runs":["w1/r1"]' in rows[0][3]


def test_the_same_search_again_appends_nothing(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    digest, rows = ledger.digest(), ledger.value("SELECT count(*) FROM ledger.journal")
    for from_s, to_s in [(FROM_S, TO_S), (TEN, TEN + 1), (0, seconds(NOON))]:
        assert credited(ledger, from_s, to_s) == Credited((), None)
    assert ledger.value("SELECT count(*) FROM ledger.journal") == rows
    assert ledger.digest() == digest


def test_39_a_fault_that_is_told_every_minute_is_one_incident(ledger: Ledger) -> None:
    ledger.append(*(broken(TEN + 60 * n) for n in range(50)), *failed(), *failed("w2", to_s=TEN + 2000))
    (proposal,) = credited(ledger).proposals
    assert proposal.fresh == (RunName("w1", "r1"),)


def test_55_siblings_on_other_hosts_are_credited_once_under_one_incident(ledger: Ledger) -> None:
    ledger.append(*failed(reason="NODE_FAIL", to_s=TEN))
    for n in range(2, 64):
        ledger.append(*failed("w1", f"r{n}", hosts=[f"h{n}"], reason="cancelled", to_s=TEN + 20)[1:])
    assert len(credited(ledger).proposals[0].fresh) == 63
    assert len(journalled(ledger)) == 64
    assert credited(ledger).seq is None


def test_a_run_that_goes_on_is_credited_when_it_has_stopped(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), told(TEN - HOUR, started("w2", "r1")))
    credited(ledger)
    assert journalled(ledger) == FIRST
    ledger.append(told(TEN + 500, ended("w2", "r1", reason="failed")))
    (proposal,) = credited(ledger).proposals
    assert (proposal.fresh, proposal.version) == ((RunName("w2", "r1"),), True)
    (_, version), grant = journalled(ledger)[2:]
    assert version.startswith(INCIDENT + "/")
    assert grant == ("credit.granted", f"{INCIDENT}/w2/r1")
    assert credited(ledger).seq is None


EARLIER = [
    ("evidence", lambda: broken(TEN - 300, reason="xid-48")),
    ("another run", lambda: failed("w0", to_s=TEN - 400, reason="NODE_FAIL")),
]


@pytest.mark.parametrize(("what", "late"), EARLIER, ids=[case[0] for case in EARLIER])
def test_an_incident_keeps_its_id_when_something_earlier_becomes_known(
    ledger: Ledger, what: str, late: Callable[[], Event | list[Event]]
) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    told_late = late()
    ledger.append(*(told_late if isinstance(told_late, list) else [told_late]))
    (now,) = found(ledger)
    assert now.incident != INCIDENT
    for proposal in credited(ledger).proposals:
        assert proposal.incident.incident == INCIDENT
        assert RunName("w1", "r1") not in proposal.fresh
    assert sum(type_ == "credit.granted" for type_, _ in journalled(ledger)) == len(now.runs)
    assert credited(ledger).seq is None


def test_two_incidents_that_turn_out_to_be_one_credit_no_run_twice(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), broken(TEN + 60, "h2"), *failed("w2", hosts=["h2"], to_s=TEN + 90))
    assert len(credited(ledger).proposals) == 2
    ledger.append(*failed("w3", hosts=["h1", "h2"], to_s=TEN + 90))
    (proposal,) = credited(ledger).proposals
    assert proposal.incident.incident == INCIDENT
    assert proposal.fresh == (RunName("w3", "r1"),)
    grants = [event_id for type_, event_id in journalled(ledger) if type_ == "credit.granted"]
    assert grants == [f"{INCIDENT}/w1/r1", "h2@2026-03-01T10:01:00Z/w2/r1", f"{INCIDENT}/w3/r1"]
    assert credited(ledger).seq is None


def test_what_would_be_credited_is_known_before(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    with reading(ledger.engine) as reader:
        proposals = propose(reader, CLUSTER, FROM_S, TO_S)
    assert tuple(proposals) == credited(ledger).proposals


def test_many_who_search_at_once_credit_once(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    threads = [threading.Thread(target=credited, args=(ledger,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journalled(ledger) == FIRST


def test_a_credit_is_reversed_once_and_for_good(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), *failed("w2"))
    credited(ledger)
    one, both = (RunName("w1", "r1"),), (RunName("w1", "r1"), RunName("w2", "r1"))
    assert reversed_(ledger, "w1/r1").runs == one
    again = reversed_(ledger, "w1/r1")
    assert (again.runs, again.repeated, again.seq) == ((), one, None)
    rest = reversed_(ledger, reason="it was no fault at all")
    assert (rest.runs, rest.repeated) == (both[1:], one)
    reversals = [event_id for type_, event_id in journalled(ledger) if type_ == "credit.reversed"]
    assert reversals == [f"{INCIDENT}/w1/r1/reversed", f"{INCIDENT}/w2/r1/reversed"]
    assert credited(ledger).seq is None


def test_a_reversed_run_is_not_credited_again_when_the_incident_changes(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    reversed_(ledger)
    ledger.append(broken(TEN - 3 * HOUR, evidence_at=None), *failed("w2"), broken(TEN - 500, reason="xid-48"))
    for proposal in credited(ledger, 0).proposals:
        assert RunName("w1", "r1") not in proposal.fresh


def test_a_reversal_keeps_its_reason(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    reversed_(ledger)
    with pytest.raises(Refused, match="reversed before, by grace: it was a false alarm"):
        reversed_(ledger, reason="another")
    with pytest.raises(Refused, match="needs a reason"):
        reversed_(ledger, reason=" ")


def test_what_was_never_credited_cannot_be_reversed(ledger: Ledger) -> None:
    with pytest.raises(NotFound, match="cluster 'alpha' does not exist"):
        credited(ledger)
    ledger.append(broken(), *failed())
    with pytest.raises(NotFound, match="is not known in alpha"):
        reversed_(ledger)
    credited(ledger)
    with pytest.raises(NotFound, match="gave nothing to w9/r1"):
        reversed_(ledger, "w9/r1")


def test_names_with_slashes_and_of_any_length_are_credited_and_reversed(ledger: Ledger) -> None:
    long = "h" * 900
    ledger.append(broken(name=long), *failed("team/w", "r/1", hosts=[long]))
    (proposal,) = credited(ledger).proposals
    assert len(proposal.incident.incident) <= 512
    assert credited(ledger).seq is None
    with writing(ledger.engine) as writer:
        done = reverse(
            writer, CLUSTER, proposal.incident.incident, run="team/w/r/1", by="grace", reason="test",
            clock=ledger.clock, calendar=ledger.calendar,
        )  # fmt: skip
    assert done.runs == (RunName("team/w", "r/1"),)
