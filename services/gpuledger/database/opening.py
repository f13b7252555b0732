"""Open the database in use: yours when an URL is set, else the embedded one, migrated."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, ProgrammingError

from gpuledger.database import migrate
from gpuledger.database.embedded import EmbeddedPostgres
from gpuledger.database.engine import make_engine
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.settings import Settings


@contextmanager
def database_url(settings: Settings) -> Iterator[str]:
    """Yield the SQLAlchemy URL in use; the embedded server runs until the block ends."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    with EmbeddedPostgres(settings.home) as server:
        yield server.url()


@contextmanager
def open_database(settings: Settings) -> Iterator[sa.Engine]:
    """Yield an engine on a migrated database; the embedded one is migrated when needed.

    Raises:
        Refused: When your own database is not migrated.
        Unavailable: When it cannot be reached.
    """
    with database_url(settings) as url:
        engine = make_engine(url)
        try:
            if revision(engine) != newest_revision():
                if settings.database_url is not None:
                    raise Refused(
                        "the database is not migrated to this version", hint="run gpuledger db upgrade"
                    )
                migrate.upgrade(url)
            yield engine
        finally:
            engine.dispose()


def revision(engine: sa.Engine) -> str | None:
    """Return the schema revision of a database, or None when it has none yet."""
    try:
        with engine.connect() as connection:
            found: str | None = connection.scalar(sa.text("SELECT version_num FROM public.alembic_version"))
            return found
    except ProgrammingError:
        return None
    except OperationalError as error:
        raise Unavailable(
            f"the database cannot be reached: {error.orig}",
            hint="check GPULEDGER_DATABASE_URL and that PostgreSQL runs, then try again",
        ) from error


def newest_revision() -> str:
    """Return the newest revision shipped, from the dated file names (importing Alembic is slow)."""
    names = [
        entry.name for entry in (resources.files("gpuledger_migrations") / "versions").iterdir()
        if entry.name.endswith(".py") and entry.name[:1].isdigit()
    ]  # fmt: skip
    return max(names).split("_")[3]
