"""What every test shares: a clean environment, Hypothesis profiles, a database of its own."""

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import settings
from tests.parallel import pytest_collection_modifyitems, pytest_runtest_protocol

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

__all__ = ["pytest_collection_modifyitems", "pytest_runtest_protocol"]

FORM = os.environ.get("GPULEDGER_TEST_FORM", "short")
"""``short``: a tenth of the stated counts, for every day. ``full``: the stated counts, for the record."""

EXAMPLES = {"short": 100, "full": 1000}

sys.modules["pyspark.sql.connect"] = None  # type: ignore[assignment]
"""Spark Connect, which nobody here uses, ends a process whose main module has no file, as if it were its own doctests:
a worker of xdist has none, and Great Expectations imports it. So it counts as not installed, which it mostly is."""

_names = itertools.count(1)


def pytest_configure() -> None:
    """Choose the Hypothesis profile before any test module is imported."""
    for form, examples in EXAMPLES.items():
        settings.register_profile(
            form,
            max_examples=examples,
            deadline=None,  # a machine with two cores is often late; no property here is about time
            derandomize="CI" in os.environ,
            print_blob=True,
        )
    settings.load_profile(FORM)


@pytest.fixture(scope="session", autouse=True)
def _clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever runs the tests has settings of their own; no test may see them or their data folder."""
    with pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - {"GPULEDGER_TEST_FORM"}:
            if name.startswith(("GPULEDGER_", "DAGSTER_", "STREAMLIT_", "PG")):
                patch.delenv(name)
        patch.setenv("GPULEDGER_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
        patch.setenv("NO_COLOR", "1")
        yield


@pytest.fixture(scope="session")
def test_form() -> str:
    """``short`` or ``full``: what a test multiplies its counts by is its own affair."""
    return FORM


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator["EmbeddedPostgres"]:
    """One embedded PostgreSQL for the whole session, in a folder of its own.

    Nothing in it has to outlive the machine, so it does not wait for the disk.
    """
    from gpuledger.database.embedded import EmbeddedPostgres

    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres")) as server:
        wait_for_the_disk(server, wait=False)
        yield server


def wait_for_the_disk(postgres: "EmbeddedPostgres", *, wait: bool) -> None:
    """Let a server keep what it commits as a production server does, or be quicker than one."""
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        _administer(postgres, f"ALTER SYSTEM SET {setting} = {'on' if wait else 'off'}")
    _administer(postgres, "SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def template_database(postgres: "EmbeddedPostgres") -> str:
    """The name of a migrated, empty database that nobody is connected to."""
    from gpuledger.database.migrate import upgrade

    name = "gpuledger_template"
    _administer(postgres, f"CREATE DATABASE {name} TEMPLATE gpuledger")
    upgrade(postgres.url(name))
    return name


@pytest.fixture
def database_url(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[str]:
    """The URL of a migrated database of this test's own, dropped afterwards."""
    with new_database(postgres, template_database) as url:
        yield url


@contextmanager
def new_database(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[str]:
    """Make a migrated database, give its URL, and drop it afterwards."""
    name = f"gpuledger_test_{next(_names)}"
    _administer(postgres, f"CREATE DATABASE {name} TEMPLATE {template_database}")
    yield postgres.url(name)
    _administer(postgres, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(postgres: "EmbeddedPostgres", statement: str) -> None:
    engine = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Streamlit leaves a page in the place of ``__main__``; processes that are spawned later would run it."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]
