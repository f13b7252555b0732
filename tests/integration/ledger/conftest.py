"""Ledgers for tests: one for each, or one for a module whose tests take back what they change."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import Ledger

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """An empty ledger in a database of the test's own; days are UTC days."""
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture(scope="module")
def shared_ledger(
    postgres: "EmbeddedPostgres", template_database: str, request: pytest.FixtureRequest
) -> Iterator[Ledger]:
    """An empty ledger for all tests of a module."""
    name = f"ledger_{request.module.__name__.rpartition('.')[2]}"
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template_database}")
    ledger = Ledger(postgres.url(name))
    yield ledger
    ledger.engine.dispose()
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
