"""One closer of a cluster at a time: a lock of the database, which goes with whoever held it."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from psycopg.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError

from gpuledger.database.engine import detached
from gpuledger.kernel.errors import Conflict

PATIENCE_S = 600
"""How long a closer waits for another one."""


@contextmanager
def one_closer(engine: sa.Engine, cluster: str, patience_s: int = PATIENCE_S) -> Iterator[None]:
    """Keep other closers of the cluster waiting until the block ends, or this process does.

    What keeps a close right is not this lock: each of its rows names the version that it belongs to. The lock keeps
    two from doing the same work.

    Raises:
        Conflict: When another one does not come to an end.
        Unavailable: When the database cannot be reached.
    """
    with detached(engine) as connection:
        try:
            connection.exec_driver_sql(f"SET lock_timeout = '{patience_s}s'")
            connection.execute(
                sa.text("SELECT pg_advisory_lock(hashtextextended('close/' || :cluster, 0))"),
                {"cluster": cluster},
            )
            connection.commit()
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable):
                raise
            raise Conflict(
                f"another closer of {cluster} is at work",
                hint="wait for it; what it leaves undone is done by the next",
            ) from error
        yield
