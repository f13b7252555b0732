"""The resources: the database with the ledger's read views and the warehouse, and the folder of Data Docs."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg
import sqlalchemy as sa
from pydantic import PrivateAttr
from sqlalchemy.exc import OperationalError

from gpuledger.database.engine import make_engine
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Unavailable
from gpuledger.settings import load
from gpuledger_pipelines.data_docs.folder import DataDocs
from gpuledger_pipelines.statements import statement

URL_VARIABLE = "GPULEDGER_DATABASE_URL"
SETTINGS = (
    "SET LOCAL work_mem = '64MB'",  # a month of samples is grouped and sorted in memory
    "SET LOCAL jit = off",  # compiling the statements takes longer than it saves
)
"""For the length of a transaction that rewrites a table."""

PROGRESS = logging.getLogger("gpuledger_pipelines.progress")


class Warehouse(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Reads ``ledger_read``, writes ``warehouse``.

    Args:
        url: SQLAlchemy URL of a PostgreSQL with gpuledger's schemas.
    """

    url: str
    _engine: sa.Engine | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["Warehouse"]:
        """Keep one engine for the length of a run."""
        del context  # what Dagster calls it with
        engine = self.engine()
        try:
            yield self
        finally:
            engine.dispose()

    def engine(self) -> sa.Engine:
        """Return the engine; nothing connects before it is used."""
        if self._engine is None:
            self._engine = make_engine(self.url)
        return self._engine

    @contextmanager
    def writing(self, table: str) -> Iterator["Rewriting"]:
        """Open one transaction that rewrites parts of a table; other writers of the table wait, readers do not.

        Raises:
            Unavailable: When the database cannot be used.
        """
        try:
            with self.engine().connect() as connection:
                connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    for setting in SETTINGS:
                        connection.execute(sa.text(setting))
                    # LOCK takes no snapshot, so the one that follows holds all that earlier writers committed.
                    connection.execute(sa.text(f"LOCK TABLE warehouse.{table} IN SHARE ROW EXCLUSIVE MODE"))
                    yield Rewriting(connection, table)
                    # The gate reads the new rows at once, long before autovacuum has counted them.
                    connection.execute(sa.text(f"ANALYZE warehouse.{table}"))
        except OperationalError as error:
            raise Unavailable(
                f"the database cannot be used now: {error.orig}",
                hint=f"check {URL_VARIABLE} and that PostgreSQL runs, then try again",
            ) from error


class KeptDocs(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where gates keep what they found; when a run is over, however it ended, the index lists its pages."""

    def docs(self) -> DataDocs:
        """Return the folder that the settings name."""
        return DataDocs.of(load())

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator["KeptDocs"]:
        """List the pages of the run at its end."""
        del context  # what Dagster calls it with
        try:
            yield self
        finally:
            try:
                self.docs().build()
            except OSError as error:
                PROGRESS.warning("the index of Data Docs was not made: %s", error)


class Rewriting:
    """A transaction that takes a table's rows of a span out and puts them in anew."""

    def __init__(self, connection: sa.Connection, table: str) -> None:
        self.connection = connection
        self.table = table

    def delete(self, where: str, binds: Mapping[str, object]) -> int:
        """Delete the rows of ``:cluster`` that match; return how many."""
        return self._run(f"DELETE FROM warehouse.{self.table} WHERE cluster = :cluster AND {where}", binds)

    def insert(self, name: str, binds: Mapping[str, object]) -> int:
        """Run the statement of a file; return the number of rows it wrote."""
        return self._run(statement(name), binds)

    def calendar(self) -> Calendar:
        """Return the organisation's calendar: as the ledger has it, else as the settings say."""
        return calendar(self.connection)

    def _run(self, sql: str, binds: Mapping[str, object]) -> int:
        return self.connection.execute(sa.text(sql), dict(binds)).rowcount


def calendar(connection: sa.Connection) -> Calendar:
    """Return the organisation's calendar: as the ledger has it, else as the settings say."""
    timezone = connection.execute(sa.text("SELECT timezone FROM ledger_read.organisation")).scalar()
    return load().calendar if timezone is None else Calendar(timezone)
