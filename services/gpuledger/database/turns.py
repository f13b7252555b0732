"""One at a time at work on something: a lock of the database, which goes with whoever held it."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from psycopg.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError

from gpuledger.database.engine import detached
from gpuledger.kernel.errors import Conflict


@contextmanager
def one_at_a_time(engine: sa.Engine, work: str, busy: Conflict, patience_s: int) -> Iterator[None]:
    """Keep others with the same work waiting until the block ends, or this process does.

    Args:
        engine: The database that they share.
        work: What is done, such as ``close/alpha``.
        busy: Raised when another one does not come to an end.
        patience_s: How long to wait for it, in seconds.

    Raises:
        Conflict: As ``busy``.
        Unavailable: When the database cannot be reached.
    """
    with detached(engine) as connection:
        try:
            connection.exec_driver_sql(f"SET lock_timeout = '{patience_s}s'")
            connection.execute(sa.text("SELECT pg_advisory_lock(hashtextextended(:work, 0))"), {"work": work})
            connection.commit()
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable):
                raise
            raise busy from error
        yield
