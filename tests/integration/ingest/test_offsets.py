"""Where consumers stand, and who may move them."""

import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.ingest import offsets
from gpuledger.kernel.errors import Fenced
from gpuledger.ledger import queries


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def claimed(engine: sa.Engine, *partitions: int, consumer: str = "ledger") -> list[offsets.Claim]:
    with writing(engine) as writer:
        return offsets.claim(writer, consumer, "topic", partitions)


def advanced(engine: sa.Engine, claim: offsets.Claim, position: int | None) -> None:
    with writing(engine) as writer:
        offsets.advance(writer, claim, position)


def positions(engine: sa.Engine, consumer: str = "ledger") -> dict[int, int]:
    with reading(engine) as reader:
        return dict(offsets.positions(reader, consumer, "topic"))


def test_a_first_claim_begins_at_the_beginning_in_the_order_of_partitions(engine: sa.Engine) -> None:
    assert [(c.partition, c.epoch, c.position) for c in claimed(engine, 2, 0)] == [(0, 1, 0), (2, 1, 0)]


def test_a_later_claim_begins_where_the_last_one_got_to_with_a_higher_epoch(engine: sa.Engine) -> None:
    (first,) = claimed(engine, 0)
    advanced(engine, first, 17)
    (second,) = claimed(engine, 0)
    assert (second.position, second.epoch) == (17, first.epoch + 1)


def test_whoever_was_taken_over_is_fenced_and_moves_nothing(engine: sa.Engine) -> None:
    (first,) = claimed(engine, 0)
    (second,) = claimed(engine, 0)
    for position in (99, None):
        with pytest.raises(Fenced, match="taken over") as fenced:
            advanced(engine, first, position)
        assert "nothing was written" in fenced.value.hint
    advanced(engine, second, 5)
    assert positions(engine) == {0: 5}


def test_a_check_without_a_position_moves_nothing(engine: sa.Engine) -> None:
    (claim,) = claimed(engine, 0)
    advanced(engine, claim, 5)
    advanced(engine, claim, None)
    assert positions(engine) == {0: 5}


def test_consumers_do_not_move_each_other(engine: sa.Engine) -> None:
    (ledger,), (telemetry,) = claimed(engine, 0), claimed(engine, 0, consumer="telemetry")
    advanced(engine, ledger, 5)
    advanced(engine, telemetry, 7)
    assert (positions(engine), positions(engine, "telemetry")) == ({0: 5}, {0: 7})


def test_a_claim_that_was_never_made_is_fenced(engine: sa.Engine) -> None:
    with pytest.raises(Fenced):
        advanced(engine, offsets.Claim("ledger", "topic", 9, 1, 0), 5)
    assert positions(engine) == {}


def test_when_the_newest_record_was_published_stays_where_a_broker_does_not_say(engine: sa.Engine) -> None:
    (claim,) = claimed(engine, 0)
    noon = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
    with writing(engine) as writer:
        offsets.advance(writer, claim, 5, noon)
        offsets.advance(writer, claim, 6)
    with reading(engine) as reader:
        (status,) = queries.streams(reader)
    assert (status.position, status.published_at, status.takeovers) == (6, noon, 1)
