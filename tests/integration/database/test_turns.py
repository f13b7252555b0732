"""One at a time at the same work; the lock goes with whoever held it."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine
from gpuledger.database.turns import one_at_a_time
from gpuledger.kernel.errors import Conflict

BUSY = Conflict("somebody else is at it", hint="wait")


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def test_another_with_the_same_work_waits_and_is_told(engine: sa.Engine) -> None:
    with one_at_a_time(engine, "archive/alpha", BUSY, 1):
        with pytest.raises(Conflict, match="somebody else"), one_at_a_time(engine, "archive/alpha", BUSY, 1):
            pytest.fail("two at once")
        with one_at_a_time(engine, "archive/beta", BUSY, 1):
            pass
    with one_at_a_time(engine, "archive/alpha", BUSY, 1):
        pass


def test_who_fails_leaves_no_lock(engine: sa.Engine) -> None:
    with pytest.raises(ZeroDivisionError), one_at_a_time(engine, "archive/alpha", BUSY, 1):
        1 / 0  # noqa: B018 - it fails
    with one_at_a_time(engine, "archive/alpha", BUSY, 1):
        pass
