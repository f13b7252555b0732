"""An ordinary login that owns its database migrates it, if the roles are there or it may make them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
import sqlalchemy as sa
from alembic import command
from tests.integration.ledger.books import HOUR, Ledger, run_of

from gpuledger.database import migrate
from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import reading
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check

ROLES = "gpuledger_owner, gpuledger_writer, gpuledger_reader"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server that no ledger was ever on: roles belong to the server."""
    with EmbeddedPostgres(tmp_path) as server:
        yield server


def administer(server: EmbeddedPostgres, *statements: str) -> None:
    engine = sa.create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def as_login(server: EmbeddedPostgres, login: str, database: str) -> str:
    parts = urlsplit(server.url(database))
    return urlunsplit(parts._replace(netloc=f"{login}:@"))


def works(url: str) -> None:
    """Append, verify, rebuild: what the product does with a database."""
    ledger = Ledger(url)
    ledger.append(*run_of(0, HOUR))
    with reading(ledger.engine) as reader:
        assert verify(reader).ok
        assert check(reader, ledger.calendar).ok
    ledger.engine.dispose()


def test_logins_that_own_their_database(server: EmbeddedPostgres) -> None:
    administer(
        server,
        "CREATE ROLE plain LOGIN", "CREATE ROLE maker LOGIN CREATEROLE", "CREATE ROLE other LOGIN CREATEROLE",
        "CREATE DATABASE plain OWNER plain", "CREATE DATABASE maker OWNER maker", "CREATE DATABASE other OWNER other",
    )  # fmt: skip

    # May not make roles, and nobody did: told what an administrator has to run, and nothing was begun.
    plain = as_login(server, "plain", "plain")
    with pytest.raises(Refused, match="login plain may not make or join the roles") as refused:
        migrate.upgrade(plain)
    assert refused.value.hint.endswith(
        "CREATE ROLE gpuledger_owner NOLOGIN; CREATE ROLE gpuledger_writer NOLOGIN;"
        f" CREATE ROLE gpuledger_reader NOLOGIN; GRANT {ROLES} TO plain;"
    )

    # May make roles.
    maker = as_login(server, "maker", "maker")
    migrate.upgrade(maker)
    works(maker)

    # The roles are there, but the login is no member and may not become one.
    other = as_login(server, "other", "other")
    for url, login in ((plain, "plain"), (other, "other")):
        with pytest.raises(Refused) as refused:
            migrate.upgrade(url)
        assert refused.value.hint.endswith(f"then try again: GRANT {ROLES} TO {login};")

    # An administrator did what was asked.
    administer(server, f"GRANT {ROLES} TO plain, other")
    for url in (plain, other):
        migrate.upgrade(url)
        works(url)
        migrate.check(url)
        command.downgrade(migrate._config(url), "base")
        migrate.upgrade(url)
        works(url)


def test_a_superuser_needs_nobody(server: EmbeddedPostgres) -> None:
    administer(server, "CREATE DATABASE fresh")
    migrate.upgrade(server.url("fresh"))
    works(server.url("fresh"))
