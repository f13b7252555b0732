"""May this process be sent requests: is the database there, and at this version's schema?"""

from functools import lru_cache

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from gpuledger.database.engine import reading
from gpuledger.kernel.errors import Unavailable


@lru_cache(maxsize=1)
def shipped_revision() -> str:
    """Return the newest migration that this version ships."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "gpuledger_migrations:")
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config).get_current_head() or ""


def require_ready(engine: sa.Engine) -> str:
    """Return the database's revision when it is the one this version needs.

    Raises:
        Unavailable: When the database cannot be reached, or is at another revision.
    """
    wanted = shipped_revision()
    try:
        with reading(engine) as reader:
            found = reader.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.errors.UndefinedTable):
            raise
        found = None
    if found != wanted:
        raise Unavailable(
            f"the database is at revision {found or 'none'}, this version needs {wanted}",
            hint="gpuledger db upgrade",
        )
    return wanted
