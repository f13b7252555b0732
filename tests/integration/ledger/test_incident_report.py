"""What is reported of incidents: their newest version, and of each run what became of its credit."""

import datetime as dt

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, ended, started, told
from tests.integration.ledger.failures import FROM_S, INCIDENT, TEN, TO_S, broken, credited, failed, reversed_

from gpuledger.database.engine import reading
from gpuledger.events.incident import CreditGranted, IncidentFound
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.incident_report import IncidentRow, RunState, incidents, workloads_in

OTHER = "h7@2026-03-01T09:00:00Z"


def reported(
    ledger: Ledger, from_s: int | None = None, to_s: int | None = None, as_of: dt.datetime | None = None
) -> list[IncidentRow]:
    with reading(ledger.engine) as reader:
        return incidents(reader, CLUSTER, from_s, to_s, as_of)


def states(ledger: Ledger, as_of: dt.datetime | None = None) -> dict[str, str]:
    return {run.run: run.state for row in reported(ledger, as_of=as_of) for run in row.runs}


def test_an_incident_is_reported_with_its_runs_and_who_paid_for_them(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    (row,) = reported(ledger)
    assert (row.cluster, row.incident, row.host, row.fault) == (CLUSTER, INCIDENT, "h1", "xid-79")
    assert row.noticed_at == dt.datetime(2026, 3, 1, 10, tzinfo=dt.UTC)
    (run,) = row.runs
    assert (run.run, run.account, run.state) == ("w1/r1", "org/vision", RunState.CREDITED)
    assert run.credited_under == INCIDENT
    assert row.credited_gpu_ms == run.credited_gpu_ms == 8000 * (HOUR + 30)


@pytest.mark.parametrize(
    ("from_s", "to_s", "count"), [(FROM_S, TO_S, 1), (TEN, TEN + 1, 1), (TEN + 1, None, 0), (None, TEN, 0)]
)
def test_incidents_are_reported_by_when_they_were_noticed(
    ledger: Ledger, from_s: int | None, to_s: int | None, count: int
) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    assert len(reported(ledger, from_s, to_s)) == count


def test_the_newest_version_counts_and_earlier_reports_can_be_repeated(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), told(TEN - HOUR, started("w2", "r1")))
    credited(ledger)
    ledger.clock.at = NOON + dt.timedelta(days=1)
    ledger.append(told(TEN + 500, ended("w2", "r1", reason="failed")))
    credited(ledger)
    reversed_(ledger, "w1/r1")
    assert states(ledger) == {"w1/r1": "reversed", "w2/r1": "credited"}
    assert states(ledger, as_of=NOON + dt.timedelta(hours=1)) == {"w1/r1": "credited"}
    assert reported(ledger, as_of=NOON - dt.timedelta(hours=1)) == []


def test_a_reversal_is_reported_with_its_reason(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    reversed_(ledger)
    ((run,),) = [row.runs for row in reported(ledger)]
    assert (run.state, run.reason, run.by) == (RunState.REVERSED, "it was a false alarm", "grace")
    assert (run.credited_under, run.credited_gpu_ms) == (None, 0)


def test_a_run_of_two_incidents_is_credited_under_the_earlier(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    ledger.append(
        told(TEN - 60, IncidentFound(cluster=CLUSTER, incident=OTHER, host="h7", fault="x", runs=["w1/r1"])),
        told(
            TEN - 60, CreditGranted(cluster=CLUSTER, workload="w1", run="r1", incident=OTHER, cap_s=4 * HOUR)
        ),
    )
    other, ours = reported(ledger)
    assert (other.incident, other.runs[0].state) == (OTHER, RunState.CREDITED)
    assert (ours.incident, ours.runs[0].state) == (INCIDENT, RunState.ELSEWHERE)
    assert (ours.runs[0].credited_under, ours.credited_gpu_ms) == (OTHER, 0)


def test_a_run_that_nobody_credited_says_so(ledger: Ledger) -> None:
    ledger.append(
        told(TEN, IncidentFound(cluster=CLUSTER, incident=OTHER, host="h7", fault="x", runs=["w1/r1"]))
    )
    ((run,),) = [row.runs for row in reported(ledger)]
    assert (run.account, run.state) == (None, RunState.NOT_CREDITED)


POSTED = """
    INSERT INTO ledger.postings (book, seq, n, recorded_at, code, commodity, amount, debit_pot, debit_account,
                                 debit_period, credit_pot, credit_account, credit_period, workload, run, effective_on)
    SELECT book, seq, 1000 + {n}, recorded_at, '{code}', '{commodity}', {amount}, '{debit}', 'org/vision', '2026-03',
           '{credit}', 'org/vision', '2026-03', workload, run, '2026-03-01'
    FROM ledger.journal WHERE type = 'credit.granted'
"""
LEGS = [
    ("credit", "gpu_ms", 500, "spent", "credited"),
    ("credit", "gpu_ms", 300, "spent", "credited"),
    ("credit", "gpu_ms", 50, "credited", "spent"),
    ("credit", "gpu_ms_weighted", 10_000, "spent", "credited"),
    ("credit", "gpu_ms_weighted", 10_000, "issue", "budget"),
    ("charge", "gpu_ms", 7, "budget", "spent"),
]


def test_what_was_given_back_is_the_net_of_the_physical_credits(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    before = reported(ledger)[0].credited_gpu_ms
    for n, (code, commodity, amount, debit, credit) in enumerate(LEGS):
        ledger.change(
            POSTED.format(n=n, code=code, commodity=commodity, amount=amount, debit=debit, credit=credit)
        )
    (row,) = reported(ledger)
    assert row.runs[0].credited_gpu_ms - before == 750
    assert row.as_json()["credited_gpu_ms"] - before == 750
    assert row.as_json()["noticed_at"] == "2026-03-01T10:00:00Z"


def test_every_cluster_is_reported_and_one_that_does_not_exist_is_not_found(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    with reading(ledger.engine) as reader:
        assert [row.incident for row in incidents(reader, None)] == [INCIDENT]
        with pytest.raises(NotFound, match="cluster 'beta' does not exist"):
            incidents(reader, "beta")


def test_either_part_of_a_runs_name_may_hold_a_slash() -> None:
    assert workloads_in(["a/b/1", "w/1", "none"]) == ["a", "a/b", "w"]
