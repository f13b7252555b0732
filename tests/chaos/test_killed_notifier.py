"""A sender is killed between sending and saying so: the next one sends the same id again, and nothing is lost."""

import os
import signal
import time
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Verifier
from tests.commands.fixtures import Ledger
from tests.commands.running import finish, start
from tests.integration.notify.receiving import SECRET, receiver, write_recipients
from tests.integration.notify.spending import roll_up

from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock

pytestmark = pytest.mark.timeout(600)

SENDING = ("notify", "run", "--send", "--json")
ACCOUNTS = 3


def spend(ledger: Ledger) -> None:
    """Let some accounts without a common node spend half of what they were given, in the period that goes on."""
    engine = make_engine(ledger.url)
    for n in range(ACCOUNTS):
        roll_up(engine, f"team{n}", 60, period=f"{SystemClock().now():%Y-%m}")
    engine.dispose()


def states(ledger: Ledger) -> list[str]:
    return [state for (state,) in ledger.rows("SELECT state FROM notify.deliveries ORDER BY notice")]


def until(reached: object, within_s: float = 60) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + within_s
    while not reached():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)


def test_what_was_sent_and_not_written_down_comes_again_under_its_id(ledger: Ledger, tmp_path: Path) -> None:
    spend(ledger)
    with receiver() as there:
        path = write_recipients(tmp_path, there.url)
        settings = {**ledger.settings, "GPULEDGER_NOTIFICATIONS": str(path)}
        there.gate.clear()  # it has the request, and does not answer: nobody can have written that it was taken
        killed = start(*SENDING, settings=settings)
        until(lambda: len(there.received) == 1)
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        there.gate.set()
        assert states(ledger) == ["due"] * ACCOUNTS
        again = finish(start(*SENDING, settings=settings))
        assert again.status == 0, again.err
        assert states(ledger) == ["sent"] * ACCOUNTS
        assert len(there.ids) == ACCOUNTS + 1
        assert len(set(there.ids)) == ACCOUNTS
        first = there.received[0]
        (second,) = [each for each in there.received[1:] if each.id == first.id]
        assert first.body == second.body
        for each in there.received:
            assert Verifier(SECRET).verify(each.body, dict(each.headers))["type"] == "budget.threshold"
        assert finish(start(*SENDING, settings=settings)).json["sent"] == []


def test_several_commands_at_once_send_each_once(ledger: Ledger, tmp_path: Path) -> None:
    spend(ledger)
    with receiver() as there:
        path = write_recipients(tmp_path, there.url)
        settings = {**ledger.settings, "GPULEDGER_NOTIFICATIONS": str(path)}
        there.gate.clear()
        several = [start(*SENDING, settings=settings) for _ in range(3)]
        until(lambda: len(there.received) >= 2)
        there.gate.set()
        ended = [finish(process) for process in several]
        assert [each.status for each in ended] == [0] * 3, [each.err for each in ended]
        assert sum(len(each.json["sent"]) for each in ended) == ACCOUNTS
        assert len(there.ids) == len(set(there.ids)) == ACCOUNTS
