"""A tick adds the time since the tick before it, by the rules of all charges, and reads no facts for it."""

import datetime as dt
import random
from collections.abc import Sequence

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, ended, started, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events import budget
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import Event
from gpuledger.events.workload import ClassChanged, Resized
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import accrual, ticking
from gpuledger.ledger.audit import verify
from gpuledger.ledger.charges import Booking
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.ledger.rebuild import check
from gpuledger.ledger.segments import Segment
from gpuledger.ledger.ticking import tick_event

EVE = at("2026-10-24T12:00:00Z")
"""Half a day before clocks go back in Berlin."""


def ticked(ledger: Ledger, at_s: int) -> None:
    with writing(ledger.engine) as writer:
        ticking.tick(writer, CLUSTER, at_s, clock=ledger.clock, calendar=ledger.calendar)


def checked(ledger: Ledger) -> None:
    """What stands is what follows from all facts, worked out anew, and the chain holds."""
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).differences == ()
        assert verify(reader).ok


def admitted(name: str, at_s: int, hold_s: int) -> Event:
    return told(
        at_s,
        DecisionMade(
            cluster=CLUSTER, workload=name, attempt=1, klass="allocated", account="org/vision", gpus_milli=8000,
            hold_gpu_ms=8000 * hold_s, reason="x", expires_at=dt.datetime.fromtimestamp(at_s + 3 * HOUR, dt.UTC),
        ),
    )  # fmt: skip


def happens(chance: random.Random, at_s: int, names: Sequence[str]) -> list[Event]:
    """Something of each kind, now or late, to some workload."""
    name, late_s = chance.choice(names), chance.choice([0, 0, 0, HOUR, 20 * HOUR])
    moment, named = at_s - late_s, {"cluster": CLUSTER, "workload": name, "run": "r1"}
    klass = chance.choice(["allocated", "unallocated"])
    return chance.choice(
        [
            [
                told(moment, submitted(name, time_limit_s=30 * HOUR)),
                told(moment, started(name, gpu_model="H100")),
            ],
            [told(moment, started(name, gpu_model="A100"))],
            [admitted(name, moment, chance.choice([1, 5, 30]) * HOUR)],
            [told(moment, ClassChanged(**named, klass=klass, reason="x"))],
            [told(moment, Resized(**named, gpus_milli=chance.choice([0, 142, 3000]), hosts=["h1"]))],
            [told(moment, ended(name))],
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_ticks_leave_what_follows_from_all_facts_whatever_happens_between_them(
    ledger: Ledger, seed: int
) -> None:
    """Days of an hour more, holds that run out, caps, weights that change, ticks that were missed for days."""
    chance = random.Random(seed)
    ledger.calendar = Calendar("Europe/Berlin")
    ledger.append(
        told(0, budget.PolicyChanged(policy="organisation", timezone="Europe/Berlin", period="month", by="ada")),
        told(EVE + 9 * HOUR + 1, budget.PolicyChanged(policy="rate_card", weights={"H100": 2500, "A100": 0}, by="ada")),
    )  # fmt: skip
    names, at_s = [f"w{n}" for n in range(6)], EVE
    for _ in range(16):
        for _ in range(chance.randrange(4)):
            ledger.append(*happens(chance, at_s + chance.randrange(HOUR), names))
        at_s += chance.choice([1, 1, 2, 7, 80]) * HOUR
        ticked(ledger, at_s)
    checked(ledger)


def test_facts_and_ticks_in_one_batch_charge_each_moment_once(ledger: Ledger) -> None:
    ledger.append(
        told(EVE, submitted()),
        told(EVE, started()),
        told(EVE, submitted("w2")),
        tick_event(CLUSTER, EVE + HOUR),
        told(EVE + HOUR, started("w2", hosts=["h2"])),
        tick_event(CLUSTER, EVE + 3 * HOUR),
    )
    ledger.append(tick_event(CLUSTER, EVE + 4 * HOUR))
    assert ledger.total() == 8000 * (4 + 3) * HOUR
    checked(ledger)


def test_what_a_tick_adds_corrects_nothing(ledger: Ledger) -> None:
    ledger.append(told(EVE, submitted()), told(EVE, started()))
    for hours in (1, 2, 3):
        ticked(ledger, EVE + hours * HOUR)
    rows = ledger.rows("SELECT amount, reason, reverses_seq FROM ledger.postings WHERE commodity = 'gpu_ms'")
    assert rows == [(8000 * HOUR, None, None)] * 3


def test_a_run_beyond_its_limit_and_one_that_is_to_come_add_nothing() -> None:
    def run(from_s: int, capped_s: int | None) -> Segment:
        return Segment(
            "w", "r", from_s, None, "a", "allocated", "-", 1000, None, (), estimated=False, capped_s=capped_s
        )

    span, booking = accrual.Span(100, 200), Booking(Calendar())
    amounts = [
        sum(p.amount for p in accrual.accrued([segment], {}, span, booking, UNWEIGHTED) if p.commodity == "gpu_ms")
        for segment in (run(0, 100), run(200, None), run(0, 150), run(150, None), run(0, None))
    ]  # fmt: skip
    assert amounts == [0, 0, 50_000, 50_000, 100_000]
