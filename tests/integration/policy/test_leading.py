"""Who leads runs the cycles: by interval, by event, one process at a time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.policy.worlds import NOON, World, event, submitted

from gpuledger.database.engine import Writer, detached, make_engine, reading
from gpuledger.events import workload
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import Conflict, Fenced, Refused, Unavailable
from gpuledger.ledger import cycles, policy_status
from gpuledger.policy.amending import Amended, Base
from gpuledger.policy.kept import decisions_of
from gpuledger.policy.leading import Leading, Terms
from gpuledger.policy.service import Issued, Issuing

LEADER = """
import os
import signal
import sys
from gpuledger.database.engine import make_engine
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.policy.leading import Leading, Terms
from gpuledger.ledger import cycles

url, silence, where = sys.argv[1:]
terms = Terms(clusters=("c",), every_s=3600, silence_s=int(silence))
look, asleep = cycles.is_woken, []

def sleep(here):
    if here == where and not asleep:
        asleep.append(here)
        os.kill(os.getpid(), signal.SIGSTOP)

def say(text):
    print(text, flush=True)
    sleep("at rest")

def looks(*asked):
    sleep("amid a snapshot")
    return look(*asked)

cycles.is_woken = looks
Leading(make_engine(url), SystemClock(), Calendar(), terms, notify=say).run()
"""


def leading(world: World, clock: FixedClock, **terms: int) -> Leading:
    return Leading(world.engine, clock, Calendar(), Terms(clusters=("c",), **terms))


def instants(world: World) -> list[int]:
    with reading(world.engine) as reader:
        rows = reader.execute(
            sa.text(
                "SELECT extract(epoch FROM effective_at)::bigint FROM ledger.journal"
                " WHERE type = 'allocation.issued' ORDER BY seq"
            )
        )
        return [at_s for (at_s,) in rows]


def wait_for(what: Callable[[], bool], within_s: float = 60) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def leader_of(world: World) -> str | None:
    with reading(world.engine) as reader:
        (status,) = policy_status.read(reader)
    return status.leader


def test_the_interval_asks_and_what_was_missed_is_not_made_up(world: World) -> None:
    clock = FixedClock(instant(NOON + 7))
    process = leading(world, clock)
    with process._session() as connection:
        for step_s in (0, 1, 52, 1, 3600, 1):
            clock.at += timedelta(seconds=step_s)
            process.turn(connection)
    assert [at_s - NOON for at_s in instants(world)] == [7, 60, 3661]
    with reading(world.engine) as reader:
        newest = cycles.named(reader, "c", NOON + 3661)
    assert newest is not None
    assert newest.every_s == 60  # whoever tells a date counts with it


def test_who_runs_once_has_no_interval(world: World) -> None:
    leading(world, FixedClock(instant(NOON))).once()
    with reading(world.engine) as reader:
        newest = cycles.named(reader, "c", NOON)
    assert newest is not None
    assert newest.every_s is None


def test_a_requeue_is_answered_before_the_next_minute_and_only_once(world: World) -> None:
    """Submissions and ends are, too, without a full cycle (test_amending)."""
    clock = FixedClock(instant(NOON))
    process = leading(world, clock)
    with process._session() as connection:
        process.turn(connection)
        over = workload.Requeued(cluster="c", workload="w-a", run="1", reason="user")
        world.intake.take([event("over", NOON, over)])
        clock.at += timedelta(seconds=1)
        process.turn(connection)
        assert instants(world) == [
            NOON
        ]  # a second has to go by since the cycle before, and its fourfold duration
        process._led["c"].rested = 0.0
        process.turn(connection)
        process._led["c"].rested = 0.0
        clock.at += timedelta(seconds=1)
        process.turn(connection)
    assert instants(world) == [NOON, NOON + 1]
    with reading(world.engine) as reader:
        assert decisions_of(reader, "c", cycles.latest(reader, "c", at_s=NOON + 1)) is not None  # type: ignore[arg-type]


class Refusing(Issuing):
    """Finds a state that contradicts itself when it is to be amended."""

    def amend(self, base: Base, at_s: int) -> Amended | None:
        raise Refused("workload 'w' is pending twice")


class RefusingLeading(Leading):
    def _issuing(self, connection: sa.Connection, *, every_s: int | None = None) -> Issuing:
        return Refusing(connection, self._clock, self._calendar, every_s=every_s)


def test_what_cannot_be_amended_is_decided_by_a_full_cycle_and_nobody_stops_leading(world: World) -> None:
    clock = FixedClock(instant(NOON))
    process = RefusingLeading(world.engine, clock, Calendar(), Terms(clusters=("c",)))
    with process._session() as connection:
        process.turn(connection)
        world.intake.take([submitted("w-debug", "c/b", NOON, 1)])
        process._led["c"].rested = 0.0
        clock.at += timedelta(seconds=1)
        process.turn(connection)
    assert instants(world) == [NOON, NOON + 1]


def test_who_stands_by_runs_no_cycle_and_takes_over_with_the_next_interval(world: World) -> None:
    clock = FixedClock(instant(NOON))
    first, second = leading(world, clock), leading(world, clock)
    with first._session() as one, second._session() as other:
        first.turn(one)
        clock.at += timedelta(seconds=60)
        second.turn(other)
        assert instants(world) == [NOON]
        with pytest.raises(Conflict, match="another process leads"):
            second.once()
        one.close()
        wait_for(lambda: leader_of(world) is None)
        second.turn(other)
    assert instants(world) == [NOON, NOON + 60]


def test_who_stands_by_says_so_once_and_names_who_leads(world: World) -> None:
    clock, said = FixedClock(instant(NOON)), list[str]()
    first = leading(world, clock)
    second = Leading(world.engine, clock, Calendar(), Terms(clusters=("c",)), notify=said.append)
    with first._session() as one, second._session() as other:
        first.turn(one)
        second.turn(other)
        second.turn(other)
        assert said == [f"stands by for c: {leader_of(world)} leads it"]
        one.close()
        wait_for(lambda: leader_of(world) is None)
        second.turn(other)
        assert said[1:] == ["leads c"]


def test_a_ledger_without_a_cluster_is_waited_for_and_that_is_said(database_url: str) -> None:
    engine, said = make_engine(database_url), list[str]()
    process = Leading(engine, FixedClock(instant(NOON)), Calendar(), Terms(), notify=said.append)
    with process._session() as connection:
        process.turn(connection)
        process.turn(connection)
    engine.dispose()
    assert said == ["there is no cluster yet: waits for the first"]


def test_why_there_is_no_cycle_is_said_once_and_not_at_each_interval(world: World) -> None:
    clock, said = FixedClock(instant(NOON - 20 * 366 * 86_400)), list[str]()
    process = Leading(world.engine, clock, Calendar(), Terms(clusters=("c",)), notify=said.append)
    with process._session() as connection:
        for _ in range(3):
            process.turn(connection)
            clock.at += timedelta(seconds=60)
    assert [text.partition(" at ")[0] for text in said] == [
        "leads c", "no cycle for c: cluster 'c' has no healthy GPUs",
    ]  # fmt: skip
    assert "apply" in said[1]  # what to do about it


def test_a_leader_that_can_decide_nothing_keeps_its_session_between_intervals(world: World) -> None:
    clock = FixedClock(instant(NOON - 20 * 366 * 86_400))  # before there were any GPUs
    process = leading(world, clock, every_s=3600, silence_s=1)
    with process._session() as connection:
        for _ in range(6):
            process.turn(connection)
            time.sleep(0.4)
        assert leader_of(world) is not None


def test_once_gives_the_others_their_cycle_where_one_has_none(world: World) -> None:
    world.intake.take([submitted("w", "bare/b", NOON, 1, cluster="bare")])
    said: list[str] = []
    process = Leading(world.engine, FixedClock(instant(NOON)), Calendar(), Terms(), notify=said.append)
    with pytest.raises(Refused, match="'bare' has no healthy GPUs"):
        process.once(said.append)
    assert instants(world) == [NOON]
    assert [text for text in said if text.startswith("c@2027-01-15T08:00:00Z#")]
    assert [text.partition(":")[0] for text in said if text.startswith("no cycle")] == ["no cycle for bare"]


def test_who_has_lost_the_lock_writes_nothing(world: World) -> None:
    process = leading(world, FixedClock(instant(NOON)))
    with process._session() as connection:
        process.turn(connection)
        connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
        connection.commit()
        with pytest.raises(Fenced):
            process._issuing(connection).issue("c", NOON + 60)
    with detached(world.engine) as killer, process._session() as connection:
        process._led.clear()
        assert policy_status.lead(Writer(connection), "c")
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        connection.commit()
        killer.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
        killer.commit()
        with pytest.raises(Unavailable):
            process._issuing(connection).issue("c", NOON + 120)
    assert instants(world) == [NOON]


class Slow(Issuing):
    """Computes for a second and a half, and says nothing to the database meanwhile."""

    def issue(self, cluster: str, at_s: int) -> Issued:
        time.sleep(1.5)
        return super().issue(cluster, at_s)


class SlowLeading(Leading):
    def _issuing(self, connection: sa.Connection, *, every_s: int | None = None) -> Issuing:
        return Slow(connection, self._clock, self._calendar, every_s=every_s)


def test_a_cycle_that_takes_longer_than_its_session_may_be_silent_is_named_and_the_next_session_lasts(
    world: World,
) -> None:
    terms = Terms(clusters=("c",), silence_s=1)
    process = SlowLeading(world.engine, FixedClock(instant(NOON)), Calendar(), terms)
    with process._session() as connection, pytest.raises(Unavailable, match="cycle of c took 2 s") as raised:
        process.turn(connection)
    assert "after 1 s without a word; the next session may be silent for 4 s" in raised.value.message
    assert raised.value.hint == "gpuledger policy run --silence 4"
    assert instants(world) == []
    process._led.clear()
    with process._session() as connection:
        process.turn(connection)
    assert instants(world) == [NOON]


def start(world: World, said: Path, silence_s: int = 60, where: str = "") -> "subprocess.Popen[bytes]":
    """Start a leader that writes to a file what it says, and stops itself where it is told to."""
    url = world.engine.url.render_as_string(hide_password=False)
    with said.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-c", LEADER, url, str(silence_s), where], stdout=out, stderr=subprocess.STDOUT
        )


def leads(world: World, process: "subprocess.Popen[bytes]") -> bool:
    return (leader_of(world) or "").endswith(f" {process.pid}")


@pytest.mark.parametrize(
    "where", ["", "at rest", "amid a snapshot"], ids=["killed", "at rest", "amid a snapshot"]
)
def test_a_leader_that_is_killed_or_paused_is_succeeded(world: World, tmp_path: Path, where: str) -> None:
    said = tmp_path / "first"
    first = start(world, said, 2, where)
    second: subprocess.Popen[bytes] | None = None
    try:
        wait_for(lambda: "leads c" in said.read_text())
        second = start(world, tmp_path / "second")
        if not where:
            first.kill()
        wait_for(lambda: second is not None and leads(world, second))
        if where:
            os.kill(first.pid, signal.SIGCONT)  # it wakes up, finds its session gone, and stands by
            wait_for(lambda: "leads nothing any more" in said.read_text())
            wait_for(lambda: "stands by for c" in said.read_text())
            assert leads(world, second)
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.wait()
