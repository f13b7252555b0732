"""Ledgers for tests. Making a database takes longer than most tests, so it is emptied and used again."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import Ledger, empty

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def ledger_database(postgres: "EmbeddedPostgres", template_database: str) -> str:
    """The URL of a migrated database that the tests of the ledger take turns with."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE ledger_tests TEMPLATE {template_database}")
    return postgres.url("ledger_tests")


def _emptied(url: str) -> Iterator[Ledger]:
    ledger = Ledger(url)
    empty(ledger)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def ledger(ledger_database: str) -> Iterator[Ledger]:
    """An empty ledger; days are UTC days."""
    yield from _emptied(ledger_database)


@pytest.fixture(scope="module")
def shared_ledger(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[Ledger]:
    """A ledger for all tests of a module, which take back what they change in it."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE IF EXISTS ledger_shared WITH (FORCE)")
        connection.exec_driver_sql(f"CREATE DATABASE ledger_shared TEMPLATE {template_database}")
    yield from _emptied(postgres.url("ledger_shared"))
