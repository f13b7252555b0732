"""Processor time of a server's backend, which what others do on the machine does not lengthen."""

import os
from pathlib import Path

import sqlalchemy as sa

from gpuledger.database.engine import Reader

_USER, _SYSTEM = 11, 12
"""Places in /proc/PID/stat after the name of the program."""


class Backend:
    """The process of PostgreSQL that serves a connection; statements are not spread over others."""

    def __init__(self, connection: sa.Connection | Reader) -> None:
        connection.execute(sa.text("SET max_parallel_workers_per_gather = 0"))
        pid: int = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()
        self._stat = Path(f"/proc/{pid}/stat")

    def spent_s(self) -> float:
        """Return the processor time since the process began, in seconds; the system counts hundredths."""
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
