"""From figures of a roll-up to what arrives: each threshold once, over restarts, by any number of senders."""

import datetime as dt
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from tests.integration.notify.spending import Inbox, foresee, mail, notifier, roll_up, webhook

from gpuledger.kernel.clock import FixedClock
from gpuledger.notify import running
from gpuledger.notify.notices import Kind, Notice, read_body
from gpuledger.notify.payloads import BudgetThreshold
from gpuledger.notify.recipients import Target
from gpuledger.notify.running import Notifier
from gpuledger.notify.sending import Undelivered

NOW = dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)

Make = Callable[..., Notifier]


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def make(database_url: str, inbox: Inbox, clock: FixedClock) -> Iterator[Make]:
    made: list[Notifier] = []

    def once(*targets: Target) -> Notifier:
        made.append(notifier(database_url, clock, inbox, *targets))
        return made[-1]

    yield once
    for each in made:
        each.engine.dispose()


def told(inbox: Inbox) -> list[tuple[str, int]]:
    """What arrived of thresholds: the account, and which."""
    found = []
    for message in inbox.tried:
        _, _, data = read_body(message.body)
        assert isinstance(data, BudgetThreshold)
        found.append((data.account, data.threshold_percent))
    return found


def test_a_dry_run_writes_and_sends_nothing(make: Make, inbox: Inbox) -> None:
    own = make()
    roll_up(own.engine, "org/a", 60)
    for _ in range(2):
        found = running.run(own, send=False)
        assert [notice.account for notice, _ in found.noticed] == ["org", "org/a"] or len(found.noticed) == 2
        assert (found.sent, found.is_sent) == ([], False)
    assert inbox.tried == []
    assert len(running.run(own, send=True).noticed) == 2


def test_each_threshold_is_told_once_a_period(make: Make, inbox: Inbox) -> None:
    own = make(webhook("a", account="org/a"))
    for charged in (10, 50, 60, 49, 70, 80, 79, 99, 100, 80, 120, 0, 200):
        roll_up(own.engine, "org/a", charged)
        running.run(own, send=True)
    assert told(inbox) == [("org/a", 50), ("org/a", 80), ("org/a", 100)]
    roll_up(own.engine, "org/a", 60, period="2026-11")
    running.run(own, send=True)
    assert told(inbox)[3:] == [("org/a", 50)]


def test_who_jumps_over_thresholds_is_told_of_the_highest(make: Make, inbox: Inbox) -> None:
    own = make(webhook("a", account="org/a"))
    roll_up(own.engine, "org/a", 95)
    running.run(own, send=True)
    assert told(inbox) == [("org/a", 80)]
    for charged in (40, 60):
        roll_up(own.engine, "org/a", charged)
        running.run(own, send=True)
    assert told(inbox) == [("org/a", 80)]


def test_an_overrun_is_told_once_however_often_the_forecast_changes(make: Make, inbox: Inbox) -> None:
    own = make(webhook("a", account="org/a"))
    roll_up(own.engine, "org/a", 10)
    for forecast in (90, 120, 80, 130):
        foresee(own.engine, "org/a", forecast)
        running.run(own, send=True)
    assert [read_body(each.body)[0] for each in inbox.tried] == [Kind.BUDGET_OVERRUN]


def test_many_senders_at_once_tell_each_once(make: Make, inbox: Inbox) -> None:
    several = [make(webhook("a"), webhook("b")) for _ in range(4)]
    for n in range(10):
        roll_up(several[0].engine, f"org/{n}", 60)
    begin = threading.Barrier(4)

    def run(own: Notifier) -> int:
        begin.wait(30)
        return len(running.run(own, send=True).sent)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(run, several)) == 22  # ten accounts and the node above them, for two
    assert len(inbox.got) == len(set(inbox.got)) == 22


def test_what_failed_comes_again_later_with_the_same_id_and_bytes(
    make: Make, inbox: Inbox, clock: FixedClock
) -> None:
    own = make(webhook("a", account="org/a"))
    roll_up(own.engine, "org/a", 60)
    inbox.faults = [Undelivered("answers 500")]
    assert [said for *_, said in running.run(own, send=True).failed] == ["answers 500"]
    assert running.run(own, send=True).sent == []
    roll_up(own.engine, "org/a", 70)
    clock.at += HOUR
    assert len(running.run(own, send=True).sent) == 1
    first, second = inbox.tried
    assert (first.id, first.body) == (second.id, second.body)
    assert second.at == NOW + HOUR


def test_one_that_cannot_be_sent_keeps_no_other_waiting(
    make: Make, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    own = make(webhook("a"), webhook("b"))
    roll_up(own.engine, "lone", 60)
    inbox.faults = [ValueError("hunter2")]
    with caplog.at_level(logging.WARNING):
        found = running.run(own, send=True)
    assert [len(found.failed), len(found.sent)] == [1, 1]
    assert found.failed[0][2] == "a fault of gpuledger: ValueError"
    assert "hunter2" not in caplog.text


def test_mail_waits_for_the_end_of_quiet_hours(make: Make, inbox: Inbox, clock: FixedClock) -> None:
    own = make(mail("leads", account="org/a", quiet={"from": "11:00", "to": "13:00"}))
    roll_up(own.engine, "org/a", 60)
    found = running.run(own, send=True)
    assert (len(found.waiting), found.sent) == (1, [])
    assert running.pending(own) == []
    clock.at += HOUR
    assert len(running.pending(own)) == 1
    assert len(running.run(own, send=True).sent) == 1
    assert running.pending(own) == []


def test_pending_changes_with_each_attempt(make: Make, inbox: Inbox, clock: FixedClock) -> None:
    """The sensor asks for a run once for what it has asked for."""
    own = make(webhook("a", account="org/a"))
    roll_up(own.engine, "org/a", 60)
    seen = [tuple(running.pending(own))]
    inbox.faults = [Undelivered("x"), Undelivered("x")]
    for _ in range(2):
        running.run(own, send=True)
        clock.at += HOUR
        seen.append(tuple(running.pending(own)))
    assert len(set(seen)) == 3


def test_who_is_told_of_it_is_fixed_when_it_is_noticed(make: Make, inbox: Inbox) -> None:
    """Who subscribes later is not told what is long known."""
    own = make(webhook("a"))
    roll_up(own.engine, "lone", 60)
    running.run(own, send=True)
    running.run(make(webhook("a"), webhook("new")), send=True)
    assert {target for target, _ in inbox.got} == {"webhook/a"}


def test_a_mail_without_a_server_says_so(make: Make) -> None:
    own = make(mail("leads"))
    roll_up(own.engine, "lone", 60)
    without = Notifier(own.engine, own.recipients, {}, own.clock, own.default)
    assert "GPULEDGER_SMTP_HOST" in running.run(without, send=True).failed[0][2]


def test_what_came_of_it_is_one_json_document(make: Make, inbox: Inbox) -> None:
    own = make(webhook("a", account="org/a"))
    roll_up(own.engine, "org/a", 85)
    document = json.loads(json.dumps(running.run(own, send=True).as_json()))
    assert document["sent_for_real"] is True
    shown = {(each["account"], each["overtaken"]): each for each in document["noticed"]}
    assert shown["org/a", False]["targets"] == ["webhook/a"]
    assert shown["org/a", False]["subject"] == "org/a: 80 % of the budget of 2026-12 is spent"
    assert shown["org/a", True]["targets"] == []
    assert [each["target"] for each in document["sent"]] == ["webhook/a"]


def test_a_trial_is_written_down_nowhere(make: Make, inbox: Inbox) -> None:
    own = make()
    running.send_to(own, "webhook/all", running.trial("webhook/all", "ada", own.clock))
    assert len(inbox.got) == 1
    assert running.pending(own) == []


def test_what_somebody_came_upon_is_told_by_the_next_run(make: Make, inbox: Inbox) -> None:
    own = make()
    data = BudgetThreshold(
        cluster="a", period="p", account="x", threshold_percent=1, spent_gpu_ms=1, given_gpu_ms=1
    )
    notice = Notice(Kind.BUDGET_THRESHOLD, ("by hand",), data)
    assert running.note(own.engine, own.recipients, notice, own.clock) is True
    assert running.note(own.engine, own.recipients, notice, own.clock) is False
    running.run(own, send=True)
    assert inbox.got == [("webhook/all", notice.id)]


def test_a_limit_on_open_transactions_does_not_have_it_sent_for_ever(
    make: Make, inbox: Inbox, clock: FixedClock
) -> None:
    own = make(webhook("a"))
    roll_up(own.engine, "lone", 60)
    with own.engine.begin() as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        for limit in ("idle_in_transaction_session_timeout", "transaction_timeout"):
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET {limit} = '300ms'")
    own.engine.dispose()  # limits are of new sessions
    inbox.before = lambda message: time.sleep(0.8)
    assert len(running.run(own, send=True).sent) == 1
    assert running.run(own, send=True).sent == []


def test_ten_thousand_accounts_are_looked_at_in_a_few_statements(make: Make, inbox: Inbox) -> None:
    """What is known already costs one query, whatever it is."""
    own = make(webhook("a", account="none"))
    with own.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO warehouse.budget_vs_actual SELECT 'alpha', '2026-12', 'org/' || n, 100, 0, 60, 0, 0, 0, 40, 0"
            " FROM generate_series(1, 10000) AS n"
        )
    assert len(running.run(own, send=True).noticed) == 10_001
    asked: list[str] = []
    sa.event.listen(
        own.engine, "before_cursor_execute", lambda _c, _u, statement, *_: asked.append(statement)
    )
    assert running.run(own, send=True).noticed == []
    assert len(asked) < 25
