"""Credits stand as long as the facts behind them: withdrawn when these are superseded, granted again when they hold."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, NOON, Ledger, empty, ended, started, told
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
from gpuledger.events import host
from gpuledger.events.envelope import Event
from gpuledger.events.workload import ClassChanged
from gpuledger.ledger import ticking
from gpuledger.ledger.incident_report import incidents
from gpuledger.ledger.incident_review import review, touched
from gpuledger.ledger.rebuild import check

W1, W2 = "w1/r1", "w2/r1"


def states(ledger: Ledger) -> dict[str, tuple[str, int]]:
    """Return run -> what became of its credit, and the physical GPU-time that it was given back."""
    with reading(ledger.engine) as reader:
        rows = incidents(reader, CLUSTER)
    return {run.run: (run.state.value, run.credited_gpu_ms) for row in rows for run in row.runs}


def ticked(ledger: Ledger, hours_ago: int) -> int:
    """Tick, and return how many credits were revised."""
    at_s = int(NOON.timestamp()) - hours_ago * HOUR
    with writing(ledger.engine) as writer:
        done = ticking.tick(writer, CLUSTER, at_s, clock=ledger.clock, calendar=ledger.calendar)
    assert not done.repeated
    return done.revised_credits


def corrected(at_s: int, name: str = "w1", **keys: Any) -> Event:  # noqa: ANN401
    """The truth about the end of a run, which beats what a stream said."""
    return told(at_s, ended(name, "r1", **keys), source="reconcile/sacct")


def test_an_estimated_failure_that_proves_to_be_an_ordinary_end_takes_its_credit_back_by_itself(
    ledger: Ledger,
) -> None:
    first, second, _ = failed()
    ledger.append(first, second, told(TEN, ended(reason="NODE_FAIL", estimated=True)))
    credited(ledger)
    assert states(ledger) == {W1: ("credited", 8 * GPU_HOUR)}
    ledger.append(told(TEN - 60, ended(reason="COMPLETED")))
    assert states(ledger)[W1][1] == 0
    assert ticked(ledger, 2) == 1
    assert states(ledger) == {W1: ("withdrawn", 0)}
    assert [ticked(ledger, 1), credited(ledger).seq] == [0, None]


def test_a_run_that_was_landed_before_its_host_failed_gets_back_what_it_was_charged(ledger: Ledger) -> None:
    landing = ClassChanged(
        cluster=CLUSTER, workload="w1", run="r1", klass="unallocated", reason="over-budget"
    )
    ledger.append(broken(), *failed(from_s=TEN - 9 * HOUR, to_s=TEN), told(TEN - 6 * HOUR, landing))
    credited(ledger)
    assert states(ledger) == {W1: ("credited", 3 * 8 * GPU_HOUR)}
    ((charged,),) = [
        ledger.rows("SELECT sum(amount) FROM ledger.balances WHERE pot = 'spent' AND commodity = 'gpu_ms'")
    ]
    assert charged == (0,), "it was charged three hours, and lost more than that"


SUPERSEDED = {
    "the host was never unhealthy": [
        told(
            TEN,
            host.StateChanged(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100", state="healthy", basis=1),
        )
    ],
    "it had ended long before": [corrected(TEN - 2 * HOUR, reason="failed")],
    "it was cancelled": [corrected(TEN + 30, reason="cancelled")],
}


@pytest.mark.parametrize("what", SUPERSEDED)
def test_what_ticks_learn_of_a_credit_they_conclude(ledger: Ledger, what: str) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    assert [ticked(ledger, 9), ticked(ledger, 8)] == [0, 0]
    before = states(ledger)
    ledger.append(*SUPERSEDED[what])
    assert ticked(ledger, 7) == 1
    assert states(ledger) == {W1: ("withdrawn", 0)}
    ledger.append(broken(reason="xid-48", basis=2), corrected(TEN + 30, reason="failed", version=1))
    assert ticked(ledger, 6) == 1
    assert states(ledger) == before
    assert ticked(ledger, 5) == 0
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).ok


def test_siblings_lose_their_credit_with_the_run_that_was_not_lost(ledger: Ledger) -> None:
    ledger.append(*failed(reason="NODE_FAIL", to_s=TEN))
    ledger.append(*failed("w1", "r2", hosts=["h2"], reason="cancelled", to_s=TEN + 20)[1:])
    ledger.append(*failed("w2", hosts=["h1"], to_s=TEN + 20))
    credited(ledger)
    assert {state for state, _ in states(ledger).values()} == {"credited"}
    ledger.append(corrected(TEN, reason="cancelled"))
    assert len(credited(ledger).revisions) == 3
    assert set(states(ledger).values()) == {("withdrawn", 0)}
    assert credited(ledger).seq is None


def test_what_a_person_reversed_stays_reversed_whatever_becomes_known(ledger: Ledger) -> None:
    ledger.append(broken(), *failed())
    credited(ledger)
    reversed_(ledger)
    ledger.append(corrected(TEN - 2 * HOUR, reason="failed"))
    ledger.append(corrected(TEN, reason="failed", version=1))
    assert [ticked(ledger, 9), credited(ledger).seq] == [0, None]
    assert states(ledger) == {W1: ("reversed", 0)}


def test_only_incidents_of_which_something_became_known_are_looked_at(ledger: Ledger) -> None:
    ledger.append(broken(), *failed(), broken(TEN, "h2"), *failed("w2", hosts=["h2"]))
    credited(ledger)
    seq = ledger.value("SELECT max(seq) FROM ledger.journal")
    ledger.append(told(TEN, started("w3", "r1", hosts=["h3"])))
    with reading(ledger.engine) as reader:
        assert touched(reader, CLUSTER, seq) == set()
        assert review(reader, CLUSTER, ["unknown"]) == []
    ledger.append(broken(TEN + 5, "h2", reason="xid-48"))
    with reading(ledger.engine) as reader:
        assert touched(reader, CLUSTER, seq) == {INCIDENT.replace("h1", "h2")}
        assert touched(reader, CLUSTER, 0) == {INCIDENT, INCIDENT.replace("h1", "h2")}
    ledger.append(corrected(TEN - HOUR, "w1"))
    with reading(ledger.engine) as reader:
        assert touched(reader, CLUSTER, seq) == {INCIDENT, INCIDENT.replace("h1", "h2")}


ends = st.tuples(
    st.sampled_from(["w1", "w2", "w3"]),
    st.sampled_from([TEN - 3 * HOUR, TEN - 60, TEN + 30, TEN + 500]),
    st.sampled_from(["NODE_FAIL", "failed", "cancelled", "completed"]),
)
healths = st.tuples(
    st.sampled_from(["h1", "h2"]), st.sampled_from([TEN - 3 * HOUR, TEN]), st.sampled_from(["unhealthy", "healthy"])
)  # fmt: skip


def _told(number: int, fact: tuple[str, int | str, str]) -> Event:
    """Return a fact that supersedes those told before it about the same end, or host at that moment."""
    name, at_s, what = fact
    assert isinstance(at_s, int)
    if name.startswith("w"):
        return corrected(at_s, name, reason=what, version=number)
    said = host.StateChanged(
        cluster=CLUSTER,
        host=name,
        gpus=8,
        gpu_model="H100",
        state=what,
        basis=number,  # type: ignore[arg-type]
    )
    return told(at_s, said, id=str(number))


@settings(
    max_examples=max(4, settings().max_examples // 30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.one_of(ends, healths), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_whatever_was_believed_meanwhile_each_run_gets_what_the_facts_say_in_the_end(
    ledger: Ledger, told_: list[tuple[str, int, str]], chance: random.Random
) -> None:
    """Never paid twice, never kept: runs that are lost to an incident by all facts, once, and no others."""
    empty(ledger)
    for n, name in enumerate(("w1", "w2", "w3")):
        ledger.append(*failed(name, hosts=["h1" if n < 2 else "h2"], from_s=TEN - 4 * HOUR)[:2])
    hours_ago = 40
    for number, fact in enumerate(told_, 1):
        ledger.append(_told(number, fact))
        if chance.random() < 0.6:
            credited(ledger, FROM_S - 5 * HOUR, TO_S)
        if chance.random() < 0.6:
            ticked(ledger, hours_ago)
            hours_ago -= 1
    credited(ledger, FROM_S - 5 * HOUR, TO_S)
    lost = {str(run) for one in found(ledger, FROM_S - 5 * HOUR, TO_S) for run in one.runs}
    (charged,) = [ledger.rows(
        "SELECT workload || '/' || run, sum(CASE credit_pot WHEN 'spent' THEN amount ELSE -amount END)::bigint"
        " FROM ledger.postings WHERE code = 'charge' AND commodity = 'gpu_ms' GROUP BY 1"
    )]  # fmt: skip
    paid = {run: amount for run, (_, amount) in states(ledger).items() if amount}
    assert paid == {run: min(amount, 4 * 8 * GPU_HOUR) for run, amount in charged if run in lost}
    assert credited(ledger, FROM_S - 5 * HOUR, TO_S).seq is None
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).ok
