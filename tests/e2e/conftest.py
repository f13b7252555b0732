"""A small seeded database, the API and the pages over it, and a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from tests.e2e import servers
from tests.e2e.browsing import launched
from tests.e2e.seeding import small_book

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from gpuledger.database.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def seeded_url(postgres: "EmbeddedPostgres", template_database: str) -> str:
    """The URL of a database with the small book."""
    name = "gpuledger_pages"
    administrator = sa.create_engine(
        postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with administrator.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template_database}")
    engine = sa.create_engine(postgres.url(name), poolclass=sa.NullPool)
    small_book(engine)
    return postgres.url(name)


@pytest.fixture(scope="session")
def api_url(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.api(seeded_url, tmp_path_factory.mktemp("api") / "log") as url:
        yield url


@pytest.fixture(scope="session")
def pages_url(api_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.pages(api_url, tmp_path_factory.mktemp("pages") / "log") as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A Chromium that goes with its module: while it is driven, the thread has a running event loop.

    A test that came after it in the same worker could not run a loop of its own.
    """
    with launched() as browser:
        yield browser


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go, to be looked at."""
    return tmp_path_factory.mktemp("shots")
