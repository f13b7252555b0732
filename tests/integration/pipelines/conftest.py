from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.integration.pipelines.rows import Database

from gpuledger.database.embedded import EmbeddedPostgres


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    return Database(database_url)


@pytest.fixture
def dagster_url(postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database of its own: Dagster's migrations and ours keep their mark in tables of one name."""
    url = postgres.url("dagster").replace("+psycopg:", "+psycopg2:")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", postgres.url("postgres"))
    monkeypatch.setenv("GPULEDGER_DAGSTER_IMAGE", "gpuledger-dagster:1")
    monkeypatch.setenv("GPULEDGER_DAGSTER_NETWORK", "gpuledger-dagster")
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE dagster"))
    yield url
    with server.connect() as connection:
        connection.execute(sa.text("DROP DATABASE dagster WITH (FORCE)"))
