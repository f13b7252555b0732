"""A ledger that lived, and empty databases."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import GPU_HOUR, HOUR, Ledger, at, granted, run_of, told

from gpuledger.events.budget import AccountCreated

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

NOVEMBER = at("2026-11-10T00:00:00Z")


@pytest.fixture
def lived(database_url: str) -> Iterator[Ledger]:
    ledger = Ledger(database_url)
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision")))
    ledger.append(told(0, granted("org/vision", "2026-11", 1000 * GPU_HOUR), id="grant"))
    ledger.append(*run_of(NOVEMBER, NOVEMBER + 5 * HOUR))
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def empty(postgres: "EmbeddedPostgres") -> Iterator[Callable[[], str]]:
    """Make empty databases, as many as are asked for."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    made: list[str] = []

    def make() -> str:
        name = f"restored_{len(made)}"
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0")
        made.append(name)
        return postgres.url(name)

    yield make
    with server.connect() as connection:
        for name in made:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
