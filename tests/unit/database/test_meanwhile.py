"""While the server is busy other work goes on; what was made ahead comes in its place, and nothing is lost."""

from collections.abc import Iterator
from itertools import count

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.database.engine import make_engine, writing
from gpuledger.database.meanwhile import Ahead, Connection, working

BUSY = "SELECT 'done' FROM pg_sleep(0.1)"


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@given(st.lists(st.integers(), max_size=20), st.integers(1, 5), st.lists(st.booleans(), max_size=30))
def test_items_come_in_order_each_once_however_many_were_made_ahead(
    items: list[int], at_once: int, steps: list[bool]
) -> None:
    ahead = Ahead(iter(items), at_once)
    for is_worked in steps:
        if is_worked and not ahead.work():
            break
    assert list(ahead) == items


def test_there_is_no_more_work_when_all_is_made() -> None:
    ahead = Ahead(range(5), 2)
    assert [ahead.work() for _ in range(4)] == [True, True, False, False]
    assert list(ahead) == [0, 1, 2, 3, 4]


def test_what_goes_wrong_ahead_is_raised_in_its_place() -> None:
    ahead = Ahead((10 // number for number in (5, 2, 0, 1)), 4)
    assert not ahead.work()
    seen = []
    with pytest.raises(ZeroDivisionError):
        seen.extend(ahead)
    assert seen == [2, 5]


def test_work_is_done_while_the_server_is_busy_and_no_longer(engine: sa.Engine) -> None:
    steps = count()
    with writing(engine, lambda: next(steps) >= 0) as writer:
        assert writer.exec_driver_sql(BUSY).scalar_one() == "done"
        assert next(steps) > 10
    done = next(steps)
    with engine.connect() as connection:
        connection.exec_driver_sql(BUSY)
    assert next(steps) == done + 1


def test_work_that_is_over_is_not_asked_again_in_the_same_wait(engine: sa.Engine) -> None:
    asked: list[int] = []
    with engine.connect() as connection, working(connection, lambda: len(asked) < 3 and not asked.append(0)):
        assert connection.exec_driver_sql(BUSY).scalar_one() == "done"
    assert len(asked) == 3


def test_work_within_other_work_takes_its_place(engine: sa.Engine) -> None:
    outer, inner = count(), count()
    with writing(engine, lambda: next(outer) >= 0) as writer:
        with working(writer, lambda: next(inner) >= 0):
            before = next(outer)
            writer.exec_driver_sql(BUSY)
            assert next(outer) == before + 1
        assert next(inner) > 10
        writer.exec_driver_sql(BUSY)
        assert next(outer) > before + 10


def test_who_is_interrupted_while_working_leaves_the_connection_at_rest(engine: sa.Engine) -> None:
    def interrupt() -> bool:
        raise KeyboardInterrupt

    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, Connection)
        with pytest.raises(KeyboardInterrupt), working(connection, interrupt):
            driver.execute(BUSY)
        assert driver.execute("SELECT 1").fetchone() == (1,)


def test_what_the_server_refuses_is_raised_though_work_was_done(engine: sa.Engine) -> None:
    with engine.connect() as connection, working(connection, lambda: True):
        with pytest.raises(sa.exc.DataError, match="division by zero"):
            connection.exec_driver_sql("SELECT 1 / (octet_length(pg_sleep(0.05)::text))")
        connection.rollback()
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
