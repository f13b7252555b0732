"""A discarded letter stays as a row, with who decided so, when and why; a person's name and words can go."""

import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.ingest.dead_letters import DeadLetter, LettersQuery, State, iter_entries, put, resolve
from gpuledger.ingest.discarding import Decision, Discarded, discard, find_decision
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.erasure import erase
from gpuledger.ledger.queries import dead_letter_count

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
LATER = NOON + dt.timedelta(hours=1)
ADA, WORDS = "Ada Lovelace", "Grace sent us test data"


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def ids(engine: sa.Engine) -> list[int]:
    """Three letters, the first of which quotes Ada."""
    with writing(engine) as writer:
        put(writer, [letter(1, b'{"user": "Ada Lovelace"}'), letter(2, b"x"), letter(3, b"y")], NOON)
    return [entry.id for entry in iter_entries(engine)]


def letter(position: int, raw: bytes) -> DeadLetter:
    place = f"gpu.scheduler.events[0]@{position}"
    return DeadLetter("gpu.scheduler.events", 0, position, place, "bad-field", "why", "hint", raw)


def discarded(engine: sa.Engine, *ids: int, by: str = ADA, reason: str = WORDS) -> Discarded:
    with writing(engine) as writer:
        return discard(writer, ids, by, reason, LATER)


def decision(engine: sa.Engine, id_: int) -> Decision | None:
    with reading(engine) as reader:
        return find_decision(reader, id_)


def test_the_row_stays_and_says_who_when_and_why(engine: sa.Engine, ids: list[int]) -> None:
    assert discarded(engine, *ids[:2]) == Discarded(2, 0)
    assert [decision(engine, id_) for id_ in ids] == [Decision(ADA, WORDS), Decision(ADA, WORDS), None]
    entries = list(iter_entries(engine, LettersQuery(state=None)))
    assert [entry.state for entry in entries] == [State.DISCARDED, State.DISCARDED, State.WAITING]
    assert [entry.ended_at for entry in entries] == [LATER, LATER, None]
    with engine.connect() as connection:
        assert (
            len(connection.exec_driver_sql("SELECT raw FROM ledger.dead_letters WHERE raw <> ''").all()) == 3
        )
    with reading(engine) as reader:
        assert dead_letter_count(reader) == 1


def test_again_changes_nothing_whoever_asks(engine: sa.Engine, ids: list[int]) -> None:
    discarded(engine, ids[0])
    assert discarded(engine, *ids, by="Grace Hopper", reason="other words") == Discarded(2, 1)
    assert decision(engine, ids[0]) == Decision(ADA, WORDS)


def test_neither_name_nor_words_stand_in_the_row(engine: sa.Engine, ids: list[int]) -> None:
    discarded(engine, ids[1])
    with engine.connect() as connection:
        row = connection.exec_driver_sql(f"SELECT d::text FROM ledger.dead_letters AS d WHERE id = {ids[1]}")
        text = row.scalar_one()
    assert "Ada" not in text
    assert WORDS not in text


def test_an_erasure_takes_the_name_the_words_and_the_bytes_of_what_nobody_needs(
    engine: sa.Engine, ids: list[int]
) -> None:
    discarded(engine, *ids[:2])
    with writing(engine) as writer:
        erased = erase(writer, ADA)
    assert (erased.texts, erased.dead_letters, erased.waiting) == (1, 1, ())
    said = decision(engine, ids[1])
    assert said == Decision(erased.token or "", None)
    with engine.connect() as connection:
        raws = connection.exec_driver_sql("SELECT raw FROM ledger.dead_letters ORDER BY id").scalars().all()
        assert [bytes(raw) for raw in raws] == [b"", b"x", b"y"]
        assert connection.exec_driver_sql("SELECT count(*) FROM side.texts").scalar_one() == 0


def test_who_has_no_name_gets_no_key(engine: sa.Engine, ids: list[int]) -> None:
    discarded(engine, ids[0], by="unknown")
    assert decision(engine, ids[0]) == Decision("unknown", WORDS)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM side.user_keys").scalar_one() == 0


def test_what_was_read_after_all_is_not_discarded_nor_anything_with_it(
    engine: sa.Engine, ids: list[int]
) -> None:
    with writing(engine) as writer:
        resolve(writer, [ids[1]], NOON)
    with pytest.raises(Refused, match=f"dead letter {ids[1]} was read after all"):
        discarded(engine, *ids)
    assert decision(engine, ids[0]) is None


@pytest.mark.parametrize("reason", ["", "  ", "a\0b"])
def test_a_reason_says_something(engine: sa.Engine, ids: list[int], reason: str) -> None:
    with pytest.raises(Refused, match="--reason"):
        discarded(engine, ids[0], reason=reason)


def test_a_number_that_there_is_not(engine: sa.Engine, ids: list[int]) -> None:
    with pytest.raises(NotFound, match="no dead letter 99"):
        discarded(engine, ids[0], 99)
    assert decision(engine, ids[0]) is None


def test_one_letter_has_one_end_whatever_a_program_tries(engine: sa.Engine, ids: list[int]) -> None:
    discarded(engine, ids[0])
    with pytest.raises(sa.exc.IntegrityError, match="one_end"), engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger.dead_letters SET resolved_at = now()")
