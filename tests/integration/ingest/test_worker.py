"""The worker books a topic once, from where the last commit stands, and only while it is the last to claim it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.events.envelope import Event, make
from gpuledger.events.host import Registered
from gpuledger.events.own import OWN
from gpuledger.events.registry import Fact, name_of
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest import worker as module
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.worker import Progress, Worker, read
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, SystemClock, instant
from gpuledger.kernel.errors import Fenced
from gpuledger.streams.files import FileBroker, FileSubscriber
from gpuledger.streams.protocol import Message, PositionLost, Record
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY

HOUR_S = 3600


def job(name: str, cluster: str = "alpha") -> list[bytes]:
    """The three facts of a job of one GPU and one hour."""
    named = {"cluster": cluster, "workload": name}
    facts: list[tuple[int, Fact]] = [
        (0, Submitted(**named, account="org/vision", user="ada", gpus_milli=1000)),
        (0, Started(**named, run="1", attempt=1, gpus_milli=1000, hosts=["h1"])),
        (HOUR_S, Ended(**named, run="1", reason="completed")),
    ]
    return [told(f"{name}/{n}", at_s, fact)[1] for n, (at_s, fact) in enumerate(facts)]


def told(name: str, at_s: int, fact: Fact) -> tuple[Event, bytes]:
    return make(id=name, source="test", at_s=at_s, data=fact)


INVENTORY = told("h1", 0, Registered(cluster="alpha", host="h1", gpus=8, gpu_model="h100"))[1]


def put(broker: FileBroker, values: Sequence[bytes]) -> None:
    broker.ensure_topics([SCHEDULER_EVENTS])
    publisher = broker.publisher()
    publisher.publish(SCHEDULER_EVENTS, [Message("alpha", value) for value in values])
    publisher.close()


def run(intake: Intake, broker: FileBroker) -> Progress:
    return Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: None, once=True)


def count(engine: sa.Engine, table: str, where: str = "true") -> int:
    with engine.connect() as connection:
        found: int = connection.exec_driver_sql(
            f"SELECT count(*) FROM ledger.{table} WHERE {where}"
        ).scalar_one()
        return found


def position(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        found: int = connection.exec_driver_sql("SELECT position FROM ledger.stream_offsets").scalar_one()
        return found


def test_a_topic_is_booked_once(engine: sa.Engine, intake: Intake, broker: FileBroker) -> None:
    put(broker, [*job("a"), *job("b")])

    first, again = run(intake, broker), run(intake, broker)

    assert (first.waiting, first.records, first.accepted, first.repeated) == (6, 6, 6, 0)
    assert (again.waiting, again.records, again.accepted) == (0, 0, 0)
    assert position(engine) == 6
    assert count(engine, "journal", "book = 'alpha'") == 6


def test_what_is_published_twice_is_counted_as_repeated(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, job("a") * 2)
    done = run(intake, broker)
    assert (done.records, done.accepted, done.repeated) == (6, 3, 3)
    assert count(engine, "segments") == 1


def test_an_empty_topic_is_drained_at_once(intake: Intake, broker: FileBroker) -> None:
    assert run(intake, broker) == Progress()


def test_once_means_up_to_where_the_topic_ended_at_the_start(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_RECORDS", 3)
    put(broker, job("a"))
    done = Worker(intake, broker, SCHEDULER_EVENTS).run(lambda _: put(broker, job("b")), once=True)
    assert done.records == 3
    assert run(intake, broker).records == 3


def test_what_one_poll_brings_is_booked_batch_by_batch(
    engine: sa.Engine, intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commits by itself, though the ones after it are read meanwhile; garbage stays with its own."""
    monkeypatch.setattr(module, "BATCH_RECORDS", 2)
    put(broker, [*job("a"), b"nonsense", *job("b"), *job("c")])
    seen: list[tuple[int, int, int]] = []

    def look(done: Progress) -> None:
        seen.append((position(engine), done.dead_lettered, count(engine, "journal", "book = 'alpha'")))

    Worker(intake, broker, SCHEDULER_EVENTS).run(look, once=True)
    assert seen == [(2, 0, 2), (4, 1, 3), (6, 1, 5), (8, 1, 7), (10, 1, 9)]


def test_once_ends_within_what_a_poll_brought(
    intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_RECORDS", 3)
    put(broker, job("a"))
    poll = FileSubscriber.poll

    def polled(subscriber: FileSubscriber, limit: int, timeout_s: float) -> Sequence[Record]:
        put(broker, job("b"))
        return poll(subscriber, limit, timeout_s)

    with monkeypatch.context() as patch:
        patch.setattr(FileSubscriber, "poll", polled)
        assert run(intake, broker).records == 3
    assert run(intake, broker).records == 3


def test_garbage_is_put_aside_in_the_same_transaction(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [b"nonsense", *job("a"), b"{}"])
    done = run(intake, broker)
    assert (done.records, done.accepted, done.dead_lettered) == (5, 3, 2)
    assert position(engine) == 5
    with engine.connect() as connection:
        letters = connection.exec_driver_sql("SELECT place FROM ledger.dead_letters ORDER BY id").all()
    assert letters == [("gpu.scheduler.events[0]@0",), ("gpu.scheduler.events[0]@4",)]


def test_a_batch_that_holds_nothing_but_garbage_moves_on(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [b"nonsense"])
    assert run(intake, broker).dead_lettered == 1
    assert position(engine) == 1


def test_several_books_in_one_batch(engine: sa.Engine, intake: Intake, broker: FileBroker) -> None:
    put(broker, [*job("a"), *job("b", "beta"), *job("c")])
    run(intake, broker)
    assert [count(engine, "journal", f"book = '{book}'") for book in ("alpha", "beta")] == [6, 3]
    assert position(engine) == 9


def test_periods_open_when_the_topic_is_drained(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [INVENTORY, *job("a")])
    run(intake, broker)
    assert count(engine, "periods", "book = 'alpha'") == 1


def test_a_worker_that_dies_before_it_opens_the_periods_leaves_that_to_the_next(
    engine: sa.Engine, intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker, [INVENTORY, *job("a")])
    with monkeypatch.context() as patch:
        patch.setattr(Intake, "open_periods", _die)
        with pytest.raises(KeyboardInterrupt):
            run(intake, broker)
    assert position(engine) == 4
    assert count(engine, "periods") == 0

    assert run(intake, broker).records == 0

    assert count(engine, "periods", "book = 'alpha'") == 1


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_one_that_was_taken_over_books_nothing(
    engine: sa.Engine, intake: Intake, broker: FileBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_RECORDS", 3)
    put(broker, [*job("a"), *job("b")])
    other = Intake(engine, SystemClock(), Calendar())
    seen: list[int] = []

    def take_over(_: Progress) -> None:
        run(other, broker)
        seen.append(count(engine, "journal"))

    with pytest.raises(Fenced, match="was taken over by another worker") as fenced:
        Worker(intake, broker, SCHEDULER_EVENTS).run(take_over, once=True)

    assert "nothing was written" in fenced.value.hint
    assert position(engine) == 6
    assert [count(engine, "journal")] == seen


@pytest.mark.parametrize(("batch", "table"), [(1, "accounts"), (4, "periods")])
def test_one_that_was_taken_over_creates_no_account_and_opens_no_period(
    engine: sa.Engine,
    intake: Intake,
    broker: FileBroker,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    table: str,
) -> None:
    """Those have transactions of their own, before the second batch and after the last."""
    monkeypatch.setattr(module, "BATCH_RECORDS", batch)
    put(broker, [INVENTORY, *job("a")])

    def claim(_: Progress) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE ledger.stream_offsets SET epoch = epoch + 1")

    with pytest.raises(Fenced):
        Worker(intake, broker, SCHEDULER_EVENTS).run(claim, once=True)
    assert count(engine, table) == 0

    run(intake, broker)
    assert count(engine, table) > 0


def test_a_stream_that_lost_its_past_stops_the_worker(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, job("a"))
    run(intake, broker)
    path = broker.path(SCHEDULER_EVENTS, 0)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    with pytest.raises(PositionLost, match="has 1 complete lines, the reader was at 3"):
        run(intake, broker)
    assert position(engine) == 3


def test_values_are_read_or_become_dead_letters() -> None:
    good = job("a")[0]
    events, letters = read([Record(TELEMETRY, 3, 7, good), Record(TELEMETRY, 3, 8, b"\xff")])
    assert [event.id for event in events] == ["a/0"]
    (letter,) = letters
    assert (letter.stream, letter.partition, letter.position) == (TELEMETRY, 3, 8)
    assert letter.place == "gpu.telemetry[3]@8"
    assert (letter.raw, letter.code) == (b"\xff", "not-an-event")
    assert letter.reason


CORPUS = Path(__file__).parents[2] / "contract/events/corpus"
"""An event of each type."""


def test_what_the_ledger_writes_itself_is_not_taken_from_a_stream(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    """Decisions, credits, closes and ticks count because they were made under the book's lock."""
    own = sorted(name_of(fact) for fact in OWN)
    put(broker, [line for name in own for line in (CORPUS / f"{name}.v1.ndjson").read_bytes().splitlines()])
    done = run(intake, broker)
    assert done.records == done.dead_lettered
    with engine.connect() as connection:
        letters = connection.exec_driver_sql("SELECT code, reason FROM ledger.dead_letters").all()
    assert {code for code, _ in letters} == {"own-type"}
    assert {reason.split()[1] for _, reason in letters} == set(own)
    assert count(engine, "journal") == 0


class _StopError(Exception):
    """Ends a worker that would read for ever."""


def live(
    intake: Intake,
    broker: FileBroker,
    monkeypatch: pytest.MonkeyPatch,
    *steps: Callable[[], None],
    moves_clocks: bool = True,
) -> None:
    """Run a worker that does not end by itself; before each of its polls something happens."""
    polls = [*steps, lambda: None, lambda: None]
    poll = FileSubscriber.poll

    def polled(subscriber: FileSubscriber, limit: int, timeout_s: float) -> Sequence[Record]:
        if not polls:
            raise _StopError
        polls.pop(0)()
        return poll(subscriber, limit, 0)

    with monkeypatch.context() as patch:
        patch.setattr(FileSubscriber, "poll", polled)
        with pytest.raises(_StopError):
            Worker(intake, broker, SCHEDULER_EVENTS, ticks=moves_clocks).run(lambda _: None)


def ticks(engine: sa.Engine) -> list[tuple[str, int]]:
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT book, extract(epoch FROM effective_at)::bigint FROM ledger.journal"
            " WHERE type = 'ledger.ticked' ORDER BY book, seq"
        )
        return [(book, at_s) for book, at_s in found]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(instant(100 * HOUR_S + 1))


def test_a_worker_ticks_what_it_booked_once_an_hour(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker, job("a"))
    later = [HOUR_S - 2, HOUR_S - 1, HOUR_S, 3 * HOUR_S]  # the first is still in the hour
    steps = [lambda s=s: setattr(clock, "at", instant(100 * HOUR_S + 1 + s)) for s in later]
    live(Intake(engine, clock, Calendar()), broker, monkeypatch, lambda: None, *steps)
    assert ticks(engine) == [("alpha", hour * HOUR_S) for hour in (100, 101, 103)]


def test_a_worker_ticks_books_that_were_ticked_before_and_no_others(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = Intake(engine, clock, Calendar())
    intake.take([told("a", 0, Registered(cluster=c, host="h", gpus=1, gpu_model="m"))[0] for c in "ab"])
    intake.tick(["b"], 90 * HOUR_S)
    live(intake, broker, monkeypatch)
    assert ticks(engine) == [("b", 90 * HOUR_S), ("b", 100 * HOUR_S)]


def test_a_worker_that_is_behind_reads_first_what_was_published_before_the_hour_turned(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_RECORDS", 1)
    monkeypatch.setattr(module, "BATCHES_AT_ONCE", 1)
    put(broker, [*job("a"), *job("b")])
    live(Intake(engine, clock, Calendar()), broker, monkeypatch, *[lambda: None] * 3)
    assert ticks(engine) == []
    live(Intake(engine, clock, Calendar()), broker, monkeypatch, *[lambda: None] * 3)
    assert count(engine, "journal", "type = 'ledger.ticked' AND seq = 7") == 1


def test_a_worker_that_was_taken_over_does_not_tick(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = Intake(engine, clock, Calendar())

    def take_over() -> None:
        clock.at = instant(101 * HOUR_S)
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE ledger.stream_offsets SET epoch = epoch + 1")

    put(broker, job("a"))
    with pytest.raises(Fenced):
        live(intake, broker, monkeypatch, lambda: None, take_over)
    assert ticks(engine) == [("alpha", 100 * HOUR_S)]


def test_reading_a_topic_once_does_not_tick(engine: sa.Engine, intake: Intake, broker: FileBroker) -> None:
    put(broker, job("a"))
    run(intake, broker)
    assert ticks(engine) == []


def test_a_worker_that_reads_history_back_in_does_not_tick(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(broker, job("a"))
    live(Intake(engine, clock, Calendar()), broker, monkeypatch, moves_clocks=False)
    assert ticks(engine) == []


def test_a_worker_of_another_topic_does_not_tick(
    engine: sa.Engine, broker: FileBroker, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    Intake(engine, clock, Calendar()).tick(["alpha"], 90 * HOUR_S)
    monkeypatch.setattr(module, "SCHEDULER_EVENTS", TELEMETRY)
    live(Intake(engine, clock, Calendar()), broker, monkeypatch)
    assert ticks(engine) == [("alpha", 90 * HOUR_S)]
