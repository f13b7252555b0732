"""A migrated database with a small book and warehouse, made once, and the API over it."""

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient
from tests.e2e.seeding import small_book

from gpuledger.api.app import create_app
from gpuledger.database.engine import make_engine
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
