"""Many writers of one book at once, and clocks that cannot be trusted: one history, strictly in order."""

import datetime as dt
import random
import threading
from collections.abc import Callable

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    ended,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.envelope import Event
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import Appended, append
from gpuledger.ledger.audit import verify

THREADS = 50
DAY = dt.timedelta(days=1)


def at_once(doers: list[Callable[[], Appended]]) -> list[Appended]:
    """Do all of it at the same moment, each in a thread of its own; return what each was told."""
    gate, told_them = threading.Barrier(len(doers)), []

    def do(doer: Callable[[], Appended]) -> None:
        gate.wait()
        told_them.append(doer())

    threads = [threading.Thread(target=do, args=(doer,)) for doer in doers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told_them) == len(doers), "nobody was refused"
    return told_them


def verified(ledger: Ledger) -> bool:
    with reading(ledger.engine) as reader:
        return verify(reader).ok


@pytest.mark.parametrize(
    "event", [told(0, submitted(), comment="text"), told(0, ended())], ids=["user", "plain"]
)
def test_fifty_threads_with_one_event_make_one_row_and_get_one_answer(ledger: Ledger, event: Event) -> None:
    answers = at_once([lambda: ledger.append(event)] * THREADS)

    assert ledger.rows("SELECT book, seq, event_id FROM ledger.journal") == [(CLUSTER, 1, event.id)]
    assert {answer.head for answer in answers} == {answers[0].head}
    assert answers[0].head is not None
    assert answers[0].head.last_seq == 1
    assert sum(len(answer.accepted) for answer in answers) == 1
    assert sum(answer.repeated for answer in answers) == THREADS - 1
    assert ledger.value("SELECT count(*) FROM side.texts") == bool(event.extra)
    assert verified(ledger)


def test_one_id_with_two_bodies_is_kept_twice_and_the_rank_decides_whoever_is_first(ledger: Ledger) -> None:
    ledger.append(told(0, started()), told(HOUR, ended()))
    small, large = (told(0, submitted(account=f"org/{name}"), id="one id") for name in ("a", "b"))
    bodies = [small, large] * (THREADS // 2)

    answers = at_once([lambda event=event: ledger.append(event) for event in bodies])  # type: ignore[misc]

    assert ledger.rows(
        "SELECT event_id, count(*) FROM ledger.journal WHERE event_id = 'one id' GROUP BY 1"
    ) == [("one id", 2)]
    assert sum(len(answer.accepted) for answer in answers) == 2
    assert ledger.net() == {("charge", "org/b", "w1/r1", "1970-01-01"): 8 * GPU_HOUR}
    assert verified(ledger)


def test_writers_whose_clocks_differ_by_a_day_agree_on_one_order(ledger: Ledger) -> None:
    def write(number: int, ahead: dt.timedelta) -> Appended:
        with writing(ledger.engine) as writer:
            events = run_of(0, HOUR, f"w{number}")
            return append(writer, CLUSTER, events, clock=FixedClock(NOON + ahead), calendar=ledger.calendar)

    at_once([lambda n=n: write(n, (n % 3 - 1) * DAY) for n in range(12)])  # type: ignore[misc]

    assert strictly_increasing(ledger)
    assert ledger.value("SELECT count(*) FROM ledger.journal") == 36
    assert verified(ledger)


def test_recorded_time_increases_strictly_while_the_clock_jumps_back_and_forth_a_day(ledger: Ledger) -> None:
    chance, latest = random.Random(22), NOON
    for number in range(40):
        ledger.clock.at = NOON + chance.choice([-1, 0, 1]) * DAY + dt.timedelta(seconds=number)
        latest = max(latest, ledger.clock.at)
        ledger.append(*run_of(0, HOUR, f"w{number}"))

    assert strictly_increasing(ledger)
    last = ledger.value("SELECT max(recorded_at) FROM ledger.journal")
    assert latest <= last < latest + dt.timedelta(milliseconds=1), "never behind, never running away"
    assert verified(ledger)


def strictly_increasing(ledger: Ledger) -> bool:
    recorded = [at for (at,) in ledger.rows("SELECT recorded_at FROM ledger.journal ORDER BY seq")]
    return recorded == sorted(set(recorded))
