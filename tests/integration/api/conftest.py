"""A migrated database with a small book and warehouse, made once, and the API over it."""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from tests.e2e.seeding import small_book
from tests.integration.api.matrix import small_ledger, tokens_of
from tests.integration.ledger.books import Ledger

from gpuledger.api.app import create_app
from gpuledger.database.engine import make_engine
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import FixedClock

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

NOW = dt.datetime(2026, 3, 11, 12, tzinfo=dt.UTC)


@pytest.fixture(scope="session")
def seeded(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """Nothing here writes, so one database serves every test."""
    administrator = sa.create_engine(
        postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE gpuledger_api TEMPLATE {template_database}")
    engine = make_engine(postgres.url("gpuledger_api"))
    small_book(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def api(seeded: sa.Engine, clock: FixedClock) -> Iterator[TestClient]:
    with TestClient(create_app(seeded, clock), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def own_ledger(database_url: str) -> Iterator[Ledger]:
    """A ledger of the test's own, for what changes something."""
    ledger = Ledger(database_url)
    small_ledger(ledger)
    yield ledger
    ledger.engine.dispose()


@pytest.fixture
def tokens(own_ledger: Ledger) -> dict[Role, str]:
    """A token of each role."""
    return tokens_of(own_ledger)


@pytest.fixture
def guarded(own_ledger: Ledger) -> Iterator[TestClient]:
    """The API over that ledger; nobody is let in without a token."""
    app = create_app(own_ledger.engine, own_ledger.clock, mode="token")
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def shown(tokens: dict[Role, str]) -> Callable[[Role], dict[str, str]]:
    """The headers of a role."""
    return lambda role: {"Authorization": f"Bearer {tokens[role]}"}
