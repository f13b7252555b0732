"""Engines and the two kinds of transaction: a reader cannot write, a writer cannot change history."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NewType

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolExhausted

from gpuledger.database.meanwhile import Work, connect_so, working
from gpuledger.kernel.errors import Collided, Unavailable

WRITER_ROLE = "gpuledger_writer"
"""May INSERT and SELECT in the journal and postings, and maintain the projections."""

_COLLISIONS = (
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
)
"""What PostgreSQL says to one of several transactions that could not all go on."""

Reader = NewType("Reader", sa.Connection)
"""A connection inside a REPEATABLE READ, READ ONLY transaction, or for one statement that reads: one snapshot."""

Writer = NewType("Writer", sa.Connection)
"""A connection inside a transaction that runs as the writer role."""


def make_engine(url: str) -> sa.Engine:
    """Return an engine for a SQLAlchemy URL; nothing connects yet."""
    # All ten are kept: what goes beyond a pool's size is closed after each use, and made anew for the next.
    return connect_so(sa.create_engine(url, pool_size=10, max_overflow=0, pool_pre_ping=True))


@contextmanager
def reading(engine: sa.Engine) -> Iterator[Reader]:
    """Open one snapshot for reading.

    Raises:
        Unavailable: When the database cannot be reached.
    """
    with _connected(engine) as connection:
        # Readers of a repeatable snapshot never see half of a batch.
        snapshot = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with snapshot.begin():
            yield Reader(snapshot)


@contextmanager
def looking_up(engine: sa.Engine) -> Iterator[Reader]:
    """Open a connection for one question, which is a snapshot of its own: nothing is begun and nothing ended.

    PostgreSQL keeps only transactions from writing: whoever is given this asks by SELECT.

    Raises:
        Unavailable: When the database cannot be reached.
    """
    with _connected(engine) as connection:
        yield Reader(connection.execution_options(isolation_level="AUTOCOMMIT"))


@contextmanager
def writing(engine: sa.Engine, meanwhile: Work | None = None) -> Iterator[Writer]:
    """Open one transaction as the writer role; it commits when the block ends without an error.

    Args:
        engine: The database.
        meanwhile: Done while the server is busy with what the transaction asks of it, its commit included.

    Raises:
        Collided: When the database gave it up for the sake of another.
        Unavailable: When the database cannot be reached.
    """
    with _connected(engine) as connection, working(connection, meanwhile), writing_on(connection) as writer:
        yield writer


@contextmanager
def detached(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a connection that belongs to no pool: what its session holds, such as a lock, is gone when it is closed.

    Raises:
        Unavailable: When the database cannot be reached.
    """
    own = sa.create_engine(engine.url, poolclass=sa.NullPool)
    with _connected(own) as connection:
        yield connection


@contextmanager
def reading_on(connection: sa.Connection) -> Iterator[Reader]:
    """Open one snapshot for reading on a connection that has no transaction; see ``reading``."""
    with _typed_errors(), connection.begin():
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield Reader(connection)


@contextmanager
def writing_on(connection: sa.Connection) -> Iterator[Writer]:
    """Open one transaction as the writer role on a connection that has none; see ``writing``."""
    with _typed_errors(), connection.begin():
        connection.exec_driver_sql(f"SET LOCAL ROLE {WRITER_ROLE}")
        connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
        yield Writer(connection)


@contextmanager
def _connected(engine: sa.Engine) -> Iterator[sa.Connection]:
    with _typed_errors(), engine.connect() as connection:
        yield connection


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except (
        OperationalError,
        PoolExhausted,
        psycopg.OperationalError,
        psycopg.errors.IdleInTransactionSessionTimeout,
    ) as error:
        cause = getattr(error, "orig", error)
        kind = Collided if isinstance(cause, _COLLISIONS) else Unavailable
        raise kind(
            f"the database cannot be used now: {cause}",
            hint="check GPULEDGER_DATABASE_URL and that PostgreSQL runs, then try again",
        ) from error
