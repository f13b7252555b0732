"""A run that outgrows the columns at a tick does not stop the clock of its book."""

import pytest
from tests.integration.ledger.books import CLUSTER, HOUR, NOON, Ledger, ended, started, submitted, told
from tests.integration.ledger.test_ticking import tick, ticked_s

from gpuledger.database.engine import reading, writing
from gpuledger.events.fields import GPUS_MAX
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import TooLarge
from gpuledger.ledger import ticking
from gpuledger.ledger.audit import verify
from gpuledger.ledger.overflowing import REASON, SOURCE
from gpuledger.ledger.rebuild import check
from gpuledger.ledger.ticking import Ticked

NOW = int(NOON.timestamp())
DAY = 24 * HOUR
HUGE = GPUS_MAX * 1000
"""As many milli-GPU as a run may have: of such runs a column holds 106 days."""


@pytest.fixture
def crowded(ledger: Ledger) -> Ledger:
    """Four runs of the largest size and one of eight GPUs in one account, one of eight GPUs in another."""
    sizes = {"w1": HUGE, "w2": HUGE, "w3": HUGE, "w4": HUGE, "w5": 8000, "w6": 8000}
    for name, gpus_milli in sizes.items():
        account = "org/speech" if name == "w6" else "org/vision"
        asked = submitted(name, account=account, gpus_milli=gpus_milli)
        ledger.append(told(NOW, asked), told(NOW, started(name, gpus_milli=gpus_milli)))
    ledger.clock = FixedClock(instant(NOW))
    tick(ledger, NOW)
    return ledger


def later(ledger: Ledger, days: int, hours: int = 0) -> Ticked:
    at_s = NOW + days * DAY + hours * HOUR
    ledger.clock = FixedClock(instant(at_s))
    return tick(ledger, at_s)


def is_sound(ledger: Ledger) -> bool:
    with reading(ledger.engine) as reader:
        return verify(reader).ok and check(reader, ledger.calendar).differences == ()


def charged(ledger: Ledger, workload: str) -> int:
    return int(ledger.value(
        "SELECT coalesce(sum(amount), 0) FROM ledger.postings WHERE workload = :w AND commodity = 'gpu_ms'", w=workload
    ))  # fmt: skip


def test_the_run_concerned_is_put_aside_and_the_others_are_charged(crowded: Ledger) -> None:
    assert later(crowded, 24) == Ticked(CLUSTER, NOW + 24 * DAY)
    assert later(crowded, 27) == Ticked(CLUSTER, NOW + 27 * DAY, put_aside=1)
    assert ticked_s(crowded) == NOW + 27 * DAY
    rows = crowded.rows(
        "SELECT workload, run, body->>'reason', body->>'estimated', effective_at FROM ledger.journal"
        " WHERE source = :source", source=SOURCE
    )  # fmt: skip
    assert rows == [("w1", "r1", REASON, "true", instant(NOW + 24 * DAY))]
    assert charged(crowded, "w1") == 24 * DAY * HUGE
    assert {name: charged(crowded, name) for name in ("w2", "w5", "w6")} == {
        "w2": 27 * DAY * HUGE, "w5": 27 * DAY * 8000, "w6": 27 * DAY * 8000,
    }  # fmt: skip
    assert is_sound(crowded)


def test_the_next_ticks_go_on_without_it(crowded: Ledger) -> None:
    later(crowded, 24)
    later(crowded, 27)
    assert later(crowded, 27, hours=1).put_aside == 0
    assert charged(crowded, "w5") == (27 * DAY + HOUR) * 8000
    assert is_sound(crowded)


def test_its_true_end_beats_the_estimate(crowded: Ledger) -> None:
    later(crowded, 24)
    later(crowded, 27)
    crowded.append(told(NOW + 25 * DAY, ended("w1")))
    assert charged(crowded, "w1") == 25 * DAY * HUGE
    with pytest.raises(TooLarge, match="larger than the ledger can hold"):
        crowded.append(told(NOW + 40 * DAY, ended("w1", version=2)))


def test_a_clock_that_never_ran_puts_aside_too(ledger: Ledger) -> None:
    for name in ("w1", "w2", "w3", "w4"):
        ledger.append(told(NOW, submitted(name, gpus_milli=HUGE)), told(NOW, started(name, gpus_milli=HUGE)))
    assert later(ledger, 30).put_aside == 1
    assert charged(ledger, "w2") == 30 * DAY * HUGE
    assert is_sound(ledger)


def test_what_no_open_run_explains_is_still_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TooLarge("another amount")

    monkeypatch.setattr(ticking, "append", refuse)
    with pytest.raises(TooLarge, match="another amount"), writing(ledger.engine) as writer:
        ticking.tick(writer, CLUSTER, NOW, clock=ledger.clock, calendar=ledger.calendar)
