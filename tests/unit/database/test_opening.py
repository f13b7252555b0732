"""Which database is opened, and in what state."""

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import make_engine
from gpuledger.database.migrate import _config
from gpuledger.database.opening import database_url as url_in_use
from gpuledger.database.opening import newest_revision, open_database, revision
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.settings import Settings

NOWHERE = "postgresql+psycopg://nobody@127.0.0.1:1/nothing?connect_timeout=2"


def test_your_own_database_is_used_when_an_url_is_set(database_url: str) -> None:
    with url_in_use(Settings(database_url=database_url)) as url:
        assert url == database_url
    with open_database(Settings(database_url=database_url)) as engine:
        assert revision(engine) == newest_revision()


def test_your_own_database_is_never_migrated_unasked(postgres: EmbeddedPostgres) -> None:
    settings = Settings(database_url=postgres.url("postgres"))
    with pytest.raises(Refused) as refused, open_database(settings):
        pass
    assert "gpuledger db upgrade" in refused.value.hint
    with sa.create_engine(postgres.url("postgres"), poolclass=sa.NullPool).connect() as connection:
        assert connection.exec_driver_sql("SELECT to_regclass('ledger.journal')").scalar() is None


def test_a_database_that_cannot_be_reached_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"), open_database(Settings(database_url=NOWHERE)):
        pass


def test_a_database_without_a_schema_has_no_revision(postgres: EmbeddedPostgres) -> None:
    engine = make_engine(postgres.url("postgres"))
    assert revision(engine) is None
    engine.dispose()


def test_the_newest_revision_by_file_name_is_the_one_that_the_migrations_end_at() -> None:
    assert newest_revision() == ScriptDirectory.from_config(_config(NOWHERE)).get_current_head()
