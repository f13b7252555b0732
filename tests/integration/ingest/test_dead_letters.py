"""What could not be read is kept whole, once, until somebody reads it after all."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.ingest.dead_letters import DeadLetter, LettersQuery, iter_waiting, put, resolve, waiting

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
    assert {name: note[name] for name in ("place", "code", "reason", "hint")} == {
        "place": LETTER.place, "code": LETTER.code, "reason": LETTER.reason, "hint": LETTER.hint,
    }  # fmt: skip


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
        (replace(EVENT, raw=b'{"data": {"cluster": "alpha"'), None),
        (replace(EVENT, raw=b"\xff\xfe"), None),
    ],
)
def test_a_letter_is_of_a_cluster_when_its_stream_or_itself_says_so(
    engine: sa.Engine, letter: DeadLetter, cluster: str | None
) -> None:
    assert letter.cluster() == cluster
    stored(engine, letter)
    assert len(list(iter_waiting(engine, LettersQuery(cluster="alpha")))) == (cluster == "alpha")


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
