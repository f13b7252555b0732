"""Bring a backup back into an empty database, and prove that it did."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gpuledger.backup import manifest
from gpuledger.backup.manifest import Difference, Manifest
from gpuledger.backup.programs import program, run
from gpuledger.backup.taking import heads_of, server_of
from gpuledger.database import migrate
from gpuledger.database.engine import make_engine, reading
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.audit import Audit, verify

OnStep = Callable[[str], None]
"""Told the name of each step as it begins."""

_OURS = "SELECT nspname FROM pg_namespace WHERE nspname = ANY(:names) ORDER BY 1"
_SCHEMAS = ["identity", "ledger", "ledger_read", "notify", "side", "telemetry", "warehouse"]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore came to.

    Args:
        told: What the backup says of itself.
        audit: Chain, balances and guards, verified from the rows.
        differences: Books that are not as the backup says.
    """

    told: Manifest
    audit: Audit
    differences: list[Difference]

    @property
    def ok(self) -> bool:
        """Whether everything came back, and holds."""
        return self.audit.ok and not self.differences

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "ok": self.ok,
            "taken_at": self.told.taken_at,
            "books": [{"book": each.book, "rows": each.rows, "head": each.head} for each in self.told.heads],
            "differences": [each.as_json() for each in self.differences],
            "faults": list(self.audit.faults),
        }


def restore(url: str, backup: Path, on_step: OnStep = lambda _: None) -> Restored:
    """Restore a backup, then verify every row of it.

    Args:
        url: SQLAlchemy URL of an empty database.
        backup: The backup, with its manifest beside it.
        on_step: Told of each step.

    Raises:
        NotFound: When the backup is not there.
        Refused: When it is not what its manifest tells of, or the database holds a ledger.
        Unavailable: When the database cannot be used, or the dump cannot be read into it.
    """
    on_step("check the backup")
    told = manifest.read(backup)
    engine = make_engine(url)
    try:
        with reading(engine) as reader:
            there = list(reader.execute(sa.text(_OURS), {"names": _SCHEMAS}).scalars())
            server = server_of(reader)
        if there:
            raise Refused(
                f"the database holds schemas of a ledger: {', '.join(there)}",
                hint="a backup is restored into an empty database: CREATE DATABASE, or another GPULEDGER_HOME",
            )
        on_step("make the roles")
        migrate.provide_roles(url)
        on_step("read the dump")
        major = int(server.split(".")[0])
        run(
            program("pg_restore", major),
            url,
            ["--exit-on-error", "--single-transaction", f"--dbname={sa.make_url(url).database}", str(backup)],
        )
        on_step("verify every row")
        with reading(engine) as reader:
            return Restored(told, verify(reader), manifest.differences(told, heads_of(reader)))
    finally:
        engine.dispose()
