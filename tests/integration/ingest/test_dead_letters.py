"""What could not be read is kept whole, once, until somebody reads it after all."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.ingest.dead_letters import (
    REASON_MAX,
    DeadLetter,
    LettersQuery,
    State,
    get_entry,
    iter_entries,
    list_entries,
    put,
    resolve,
    waiting,
)
from gpuledger.kernel.errors import Conflict, NotFound

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
LETTER = DeadLetter(
    stream="import/philly",
    partition=0,
    position=12,
    place="philly.csv:12",
    code="end-before-start",
    reason="end lies before start",
    hint="correct the row",
    raw=b"\x00\xff\xfe not text \n\r",
    context={"source": "philly", "fields": ["a", None, 1]},
)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def stored(engine: sa.Engine, *letters: DeadLetter) -> int:
    with writing(engine) as writer:
        return put(writer, letters, NOON)


def test_a_letter_comes_back_as_it_was_put(engine: sa.Engine) -> None:
    assert stored(engine, LETTER) == 1
    with reading(engine) as reader:
        (kept,) = waiting(reader)
    assert (kept.letter, kept.received_at) == (LETTER, NOON)


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (LETTER, 1),
        (replace(LETTER, reason="said in other words"), 1),
        (replace(LETTER, raw=b"another content at this place"), 2),
        (replace(LETTER, position=13), 2),
        (replace(LETTER, stream="import/openb"), 2),
    ],
)
def test_one_content_at_one_place_is_one_letter(engine: sa.Engine, other: DeadLetter, count: int) -> None:
    assert stored(engine, LETTER) + stored(engine, other) == count
    with reading(engine) as reader:
        assert len(waiting(reader)) == count


def test_each_new_letter_is_told_once_to_the_topic_of_dead_letters(engine: sa.Engine) -> None:
    stored(engine, LETTER, LETTER)
    with engine.connect() as connection:
        ((topic, key, value),) = connection.exec_driver_sql("SELECT topic, key, value FROM ledger.outbox")
    note = msgspec.json.decode(bytes(value))
    assert (topic, key) == ("gpu.dead-letters", "import/philly")
    told = ("stream", "partition", "position", "place", "code", "reason", "hint")
    assert {name: note[name] for name in told} == {name: getattr(LETTER, name) for name in told}


def test_letters_wait_oldest_first_and_no_longer_once_resolved(engine: sa.Engine) -> None:
    stored(engine, *(replace(LETTER, position=n) for n in (3, 1, 2)))
    with writing(engine) as writer:
        assert [kept.letter.position for kept in waiting(writer, limit=2)] == [3, 1]
        resolve(writer, [kept.id for kept in waiting(writer, limit=2)], NOON)
        assert [kept.letter.position for kept in waiting(writer)] == [2]
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM ledger.dead_letters").scalar() == 3


EVENT = replace(LETTER, stream="gpu.scheduler.events", position=7)


@pytest.mark.parametrize(
    ("letter", "cluster"),
    [
        (replace(LETTER, stream="import/philly/philly-2"), "philly-2"),
        (replace(EVENT, raw=b'{"specversion": 7, "data": {"cluster": "alpha", "workload": 5}}'), "alpha"),
        (replace(EVENT, raw=b'{"data": {"cluster": 5}}'), None),
        (replace(EVENT, raw=b'{"data": {}}'), None),
        (replace(EVENT, raw=b'{"data": {"cluster": "al\\u0000pha"}}'), None),
        (replace(EVENT, raw=b"[" * 100_000), None),
        (replace(EVENT, raw=b'{"data": {"cluster": "alpha"'), None),
        (replace(EVENT, raw=b"\xff\xfe"), None),
    ],
)
def test_a_letter_is_of_a_cluster_when_its_stream_or_itself_says_so(
    engine: sa.Engine, letter: DeadLetter, cluster: str | None
) -> None:
    assert letter.cluster() == cluster
    stored(engine, letter)
    (entry,) = iter_entries(engine)
    assert entry.cluster == cluster
    assert len(list(iter_entries(engine, LettersQuery(cluster="alpha")))) == (cluster == "alpha")


def test_what_waited_then(engine: sa.Engine) -> None:
    """Received at noon, resolved at one."""
    stored(engine, LETTER)
    hour = dt.timedelta(hours=1)
    with writing(engine) as writer:
        resolve(writer, [waiting(writer)[0].id], NOON + hour)
    with reading(engine) as reader:
        waited = [bool(waiting(reader, LettersQuery(as_of=NOON + n * hour / 2))) for n in range(-1, 4)]
        assert waited == [False, True, True, False, False]
        assert not waiting(reader)


@pytest.mark.parametrize(
    ("from_h", "to_h", "found"), [(0, 1, 1), (-1, 0, 0), (1, 2, 0), (None, 1, 1), (0, None, 1)]
)
def test_a_window_of_receipt_is_half_open(
    engine: sa.Engine, from_h: int | None, to_h: int | None, found: int
) -> None:
    stored(engine, LETTER)
    from_at, to_at = (None if h is None else NOON + dt.timedelta(hours=h) for h in (from_h, to_h))
    with reading(engine) as reader:
        assert len(waiting(reader, LettersQuery(from_at=from_at, to_at=to_at))) == found


def test_an_entry_says_all_but_the_bytes(engine: sa.Engine) -> None:
    stored(engine, LETTER)
    with reading(engine) as reader:
        (entry,) = list_entries(reader)
        assert get_entry(reader, entry.id) == entry
        with pytest.raises(NotFound, match="no dead letter 99"):
            get_entry(reader, 99)
    said = ("stream", "partition", "position", "place", "code", "reason", "hint")
    assert [getattr(entry, name) for name in said] == [getattr(LETTER, name) for name in said]
    assert (entry.received_at, entry.bytes, entry.state) == (NOON, len(LETTER.raw), State.WAITING)
    assert entry.ended_at is None


def test_a_reason_that_quotes_without_end_is_cut(engine: sa.Engine) -> None:
    stored(engine, replace(LETTER, reason="x" * 10_000))
    (entry,) = iter_entries(engine)
    assert len(entry.reason) == REASON_MAX


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        (LettersQuery(), [1, 2, 3]),
        (LettersQuery(code="bad-field"), [2]),
        (LettersQuery(stream="gpu.telemetry"), [3]),
        (LettersQuery(code="bad-field", stream="gpu.telemetry"), []),
    ],
)
def test_letters_by_what_they_have_in_common(
    engine: sa.Engine, query: LettersQuery, positions: list[int]
) -> None:
    letters = [replace(LETTER, position=n) for n in (1, 2, 3)]
    letters[1] = replace(letters[1], code="bad-field")
    letters[2] = replace(letters[2], stream="gpu.telemetry")
    stored(engine, *letters)
    assert [entry.position for entry in iter_entries(engine, query)] == positions


def test_a_list_goes_on_behind_the_last_number_of_a_page(engine: sa.Engine) -> None:
    stored(engine, *(replace(LETTER, position=n) for n in range(5)))
    seen: list[int] = []
    with reading(engine) as reader:
        while page := list_entries(reader, after=seen[-1] if seen else 0, limit=2):
            seen += [entry.id for entry in page]
    assert seen == [entry.id for entry in iter_entries(engine)]
    assert len(seen) == 5


@pytest.mark.parametrize("ended", ["resolved", "discarded"])
def test_what_had_become_of_a_letter_then(engine: sa.Engine, ended: str) -> None:
    stored(engine, LETTER)
    hour = dt.timedelta(hours=1)
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE ledger.dead_letters SET {ended}_at = :at"), {"at": NOON + hour})

    def found(state: State | None, at: dt.datetime | None) -> int:
        return len(list(iter_entries(engine, LettersQuery(state=state, as_of=at))))

    for at, waits in ((NOON, 1), (NOON + 2 * hour, 0), (None, 0)):
        assert found(State.WAITING, at) == waits
        assert found(State(ended), at) == 1 - waits
        assert found(None, at) == 1
    (entry,) = iter_entries(engine, LettersQuery(state=None))
    assert (entry.state, entry.ended_at) == (State(ended), NOON + hour)


def test_a_letter_is_resolved_once(engine: sa.Engine) -> None:
    """Whoever comes second must not book what it says."""
    stored(engine, LETTER)
    with writing(engine) as writer:
        (kept,) = waiting(writer)
        resolve(writer, [kept.id], NOON)
    with writing(engine) as writer, pytest.raises(Conflict, match="meanwhile"):
        resolve(writer, [kept.id], NOON)
