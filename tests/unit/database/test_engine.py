"""Readers see one snapshot and change nothing; writers commit whole or not at all."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from gpuledger.database.engine import WRITER_ROLE, Reader, looking_up, make_engine, reading, writing
from gpuledger.kernel.errors import Unavailable

INSERT = "INSERT INTO side.texts VALUES ('ref', 'salt', 'body')"
COUNT = "SELECT count(*) FROM side.texts"


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def texts(engine: sa.Engine) -> int:
    with reading(engine) as reader:
        return reader.exec_driver_sql(COUNT).scalar_one()


def test_a_writer_commits_when_its_block_ends_as_the_writer_role(engine: sa.Engine) -> None:
    with writing(engine) as writer:
        writer.exec_driver_sql(INSERT)
        assert writer.exec_driver_sql("SELECT current_user").scalar_one() == WRITER_ROLE
        assert texts(engine) == 0
    assert texts(engine) == 1


def test_a_writer_whose_block_fails_leaves_nothing(engine: sa.Engine) -> None:
    def crash() -> None:
        with writing(engine) as writer:
            writer.exec_driver_sql(INSERT)
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        crash()
    assert texts(engine) == 0


def test_a_connection_that_wrote_is_nobody_special_to_the_next(engine: sa.Engine) -> None:
    with writing(engine):
        pass
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT current_user").scalar_one() != WRITER_ROLE


def test_a_reader_sees_one_snapshot_while_others_write(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        assert reader.exec_driver_sql(COUNT).scalar_one() == 0
        with writing(engine) as writer:
            writer.exec_driver_sql(INSERT)
        assert reader.exec_driver_sql(COUNT).scalar_one() == 0
    assert texts(engine) == 1


def test_a_reader_cannot_write(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        assert_read_only(reader)
    assert texts(engine) == 0


def assert_read_only(reader: Reader) -> None:
    with pytest.raises(DBAPIError, match="read-only transaction"):
        reader.exec_driver_sql(INSERT)


def test_a_database_that_cannot_be_reached_is_unavailable_with_a_hint() -> None:
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=2")
    with pytest.raises(Unavailable) as refused, reading(engine):
        pass
    assert "GPULEDGER_DATABASE_URL" in refused.value.hint


def test_a_connection_lost_half_way_is_unavailable(engine: sa.Engine) -> None:
    def lose() -> None:
        with writing(engine) as writer:
            pid = writer.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            with engine.connect() as other:
                other.exec_driver_sql(f"SELECT pg_terminate_backend({pid})")
            writer.exec_driver_sql(INSERT)

    with pytest.raises(Unavailable):
        lose()
    assert texts(engine) == 0


def test_a_pool_without_a_free_connection_is_unavailable(database_url: str) -> None:
    engine = sa.create_engine(database_url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with reading(engine), pytest.raises(Unavailable, match="QueuePool limit"), writing(engine):
        pass
    assert texts(engine) == 0
    engine.dispose()


def test_a_question_is_a_snapshot_of_its_own_and_the_next_transaction_is_whole(engine: sa.Engine) -> None:
    with looking_up(engine) as reader:
        assert reader.exec_driver_sql(COUNT).scalar_one() == 0
        assert texts(engine) == 0
        with writing(engine) as writer:
            writer.exec_driver_sql(INSERT)
        assert reader.exec_driver_sql(COUNT).scalar_one() == 1
    for _ in range(12):  # whatever connection of the pool comes next
        with writing(engine) as writer:
            writer.exec_driver_sql(INSERT.replace("ref", "other"))
            assert texts(engine) == 1
            writer.rollback()
    assert texts(engine) == 1


def test_a_pool_keeps_every_connection_that_it_made(engine: sa.Engine) -> None:
    def pids(count: int) -> set[int]:
        opened = [engine.connect() for _ in range(count)]
        found = {connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one() for connection in opened}
        for connection in opened:
            connection.close()
        return found

    assert pids(10) == pids(10)
