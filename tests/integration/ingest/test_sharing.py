"""Workers of a group, without a broker: who is fenced joins again, who shares leaves to others what is theirs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.integration.ingest.test_worker import HOUR_S, INVENTORY, count, job, put, ticks

from gpuledger.ingest import worker as module
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Worker
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, SystemClock, instant
from gpuledger.kernel.errors import Fenced
from gpuledger.streams.files import FileBroker, FileSubscriber
from gpuledger.streams.protocol import Holder, Message, Record
from gpuledger.streams.topics import SCHEDULER_EVENTS, Topic

TWO = 2


class _OverError(Exception):
    """Ends a worker that would read for ever."""


Step = Sequence[int] | Callable[[], object]
"""What a poll begins with: the partitions that the member has from then on, or something that happens."""


class Shared(FileBroker):
    """Files in two partitions, of which a member gets those that the test says, poll by poll."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, partitions=TWO)
        self.script: Iterator[Step] = iter(())
        self.others = self.joined = 0
        self.names: list[str | None] = []

    def group(self, topic: Topic, name: str) -> "Shared":  # type: ignore[override]
        assert topic == SCHEDULER_EVENTS
        assert name.startswith("gpuledger-")
        return self

    def members(self) -> int:
        self.others -= 1
        return self.others + 1

    def join(self, holder: Holder, name: str | None = None) -> "Member":
        self.joined += 1
        self.names.append(name)
        return Member(self, holder)


class Member:
    """Does at each poll what the script says next."""

    def __init__(self, broker: Shared, holder: Holder) -> None:
        self._broker, self._holder = broker, holder
        self._positions: dict[int, int] = {}
        self._files = FileSubscriber(broker, SCHEDULER_EVENTS)

    def poll(self, limit: int, timeout_s: float) -> Sequence[Record]:
        del timeout_s
        step = next(self._broker.script, None)
        if step is None:
            raise _OverError
        if callable(step):
            step()
        else:
            lost, won = sorted(self._positions.keys() - set(step)), sorted(set(step) - self._positions.keys())
            self._holder.release(lost)
            kept = {
                partition: self._positions[partition] for partition in self._positions if partition in step
            }
            self._positions = {**kept, **self._holder.take(won)}
            self._files.assign(self._positions)
        records = self._files.poll(limit, 0)
        self._positions |= {record.partition: record.position + 1 for record in records}
        return records

    def end_positions(self) -> Mapping[int, int]:
        every = FileSubscriber(self._broker, SCHEDULER_EVENTS)
        every.assign(dict.fromkeys(range(TWO), 0))
        return every.end_positions()

    def close(self) -> None:
        self._files.close()
        self._holder.release(sorted(self._positions))


def fill(broker: FileBroker, *jobs: tuple[str, str]) -> None:
    """Publish jobs of clusters; ``alpha`` and ``beta`` are in different partitions."""
    broker.ensure_topics([SCHEDULER_EVENTS])
    publisher = broker.publisher()
    for name, cluster in jobs:
        publisher.publish(SCHEDULER_EVENTS, [Message(cluster, value) for value in job(name, cluster)])
    publisher.close()


def home(broker: FileBroker, cluster: str) -> int:
    return next(n for n in range(TWO) if cluster.encode() in broker.path(SCHEDULER_EVENTS, n).read_bytes())


def share(
    intake: Intake, broker: Shared, *script: Step, notify: Callable[[str], None] = print, ticks: bool = False
) -> Worker:
    broker.script = iter(script)
    worker = Worker(intake, broker, SCHEDULER_EVENTS, ticks=ticks, notify=notify)
    with pytest.raises(_OverError):
        worker.run(lambda _: None)
    return worker


def steal(engine: sa.Engine) -> Callable[[], None]:
    """Have another worker take every partition over."""

    def happen() -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE ledger.stream_offsets SET epoch = epoch + 1")

    return happen


@pytest.fixture
def broker(tmp_path: Path) -> Shared:
    found = Shared(tmp_path / "streams")
    fill(found, ("a", "alpha"), ("b", "beta"))
    assert home(found, "alpha") != home(found, "beta")
    return found


def test_a_member_books_the_partitions_that_it_has_and_no_others(
    engine: sa.Engine, intake: Intake, broker: Shared
) -> None:
    alpha, beta = home(broker, "alpha"), home(broker, "beta")
    assert share(intake, broker, [alpha]).progress.accepted == 3
    assert [count(engine, "journal", f"book = '{book}'") for book in ("alpha", "beta")] == [3, 0]
    assert share(intake, broker, [], [beta], [alpha, beta]).progress.accepted == 3
    assert [count(engine, "journal", f"book = '{book}'") for book in ("alpha", "beta")] == [3, 3]


def test_one_that_was_fenced_writes_nothing_and_joins_again(
    engine: sa.Engine, intake: Intake, broker: Shared
) -> None:
    notes: list[str] = []
    share(intake, broker, [0, 1])
    before = count(engine, "journal")

    def taken_while_it_sleeps() -> None:
        fill(broker, ("d", "alpha"), ("e", "beta"))
        steal(engine)()

    worker = share(intake, broker, [0, 1], taken_while_it_sleeps, [], notify=notes.append)

    assert broker.joined == 3
    assert (worker.progress.accepted, count(engine, "journal")) == (0, before)
    assert any("was taken over by another worker" in note and "joins again" in note for note in notes)
    assert share(intake, broker, [0, 1]).progress.accepted == 6, "whoever has them next books them"


def test_one_with_a_name_ends_instead_lest_two_of_a_name_push_each_other_out(
    engine: sa.Engine, intake: Intake, broker: Shared
) -> None:
    broker.script = iter([[0, 1], lambda: (fill(broker, ("c", "alpha")), steal(engine)())])
    worker = Worker(intake, broker, SCHEDULER_EVENTS)
    with pytest.raises(Fenced, match="was taken over"):
        worker.run(lambda _: None, name="one")
    assert broker.names == ["one"]


def test_a_look_once_is_left_to_those_that_share_the_topic(
    engine: sa.Engine, intake: Intake, broker: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        module.time, "sleep", lambda _: share(Intake(engine, SystemClock(), Calendar()), broker, [0, 1])
    )
    broker.others = 9
    notes: list[str] = []
    done = Worker(intake, broker, SCHEDULER_EVENTS, notify=notes.append).run(lambda _: None, once=True)
    assert (done.records, count(engine, "journal", "book <> '~org'")) == (0, 6)
    assert notes == ["gpu.scheduler.events: workers that share it read it: 9"]


def test_a_look_once_reads_itself_when_the_others_are_gone(
    engine: sa.Engine, intake: Intake, broker: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They died, and the broker finds out after a while."""
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    broker.others = 2
    done = Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)
    assert (done.records, count(engine, "journal", "book <> '~org'")) == (6, 6)


def test_periods_open_when_all_is_booked_whoever_books_it(
    engine: sa.Engine, intake: Intake, broker: Shared
) -> None:
    """Default grants are for every account, and an account may be in another's part of the backlog."""
    publisher = broker.publisher()
    publisher.publish(SCHEDULER_EVENTS, [Message("alpha", INVENTORY)])
    publisher.close()
    alpha = home(broker, "alpha")
    share(intake, broker, [alpha], lambda: None)
    assert count(engine, "periods") == 0
    share(intake, broker, [1 - alpha], lambda: None)
    assert count(engine, "periods", "book = 'alpha'") == 1


def test_a_clock_ticks_when_all_is_booked_and_once_an_hour_whoever_holds_what(
    engine: sa.Engine, broker: Shared
) -> None:
    intake = Intake(engine, FixedClock(instant(100 * HOUR_S + 1)), Calendar())
    alpha, beta = home(broker, "alpha"), home(broker, "beta")
    share(intake, broker, [alpha], lambda: None, ticks=True)
    assert ticks(engine) == [], "an end may be in the part that nobody has read"
    share(intake, broker, [beta], lambda: None, ticks=True)
    assert ticks(engine) == [("beta", 100 * HOUR_S)], "it begins the clocks of the books that it booked"
    fill(broker, ("z", "alpha"))
    share(intake, broker, [0, 1], ticks=True)
    assert ticks(engine) == [("alpha", 100 * HOUR_S), ("beta", 100 * HOUR_S)]


@pytest.mark.parametrize(("held", "moves"), [(0, True), (1, False)])
def test_clocks_that_run_are_moved_by_the_one_that_holds_the_first_partition(
    engine: sa.Engine, broker: Shared, held: int, *, moves: bool
) -> None:
    early = Intake(engine, FixedClock(instant(100 * HOUR_S + 1)), Calendar())
    Worker(early, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)
    early.tick(["alpha", "beta"], 99 * HOUR_S)
    share(early, broker, [held], lambda: None, ticks=True)
    assert (("alpha", 100 * HOUR_S) in ticks(engine)) == moves


def test_one_that_holds_nothing_writes_nothing(engine: sa.Engine, broker: Shared) -> None:
    intake = Intake(engine, FixedClock(instant(100 * HOUR_S + 1)), Calendar())
    Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)
    intake.tick(["alpha"], 99 * HOUR_S)
    before = count(engine, "journal")
    share(intake, broker, [], lambda: None, lambda: None, ticks=True)
    assert count(engine, "journal") == before


def test_files_are_read_by_one_worker(intake: Intake, tmp_path: Path) -> None:
    broker = FileBroker(tmp_path / "plain")
    put(broker, job("a"))
    assert broker.group(SCHEDULER_EVENTS, "any") is None
    assert Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True).records == 3
