"""A period that is over, and who closes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    granted,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.close.making import Made, make
from gpuledger.close.run import Outcome, run
from gpuledger.close.steps import Closer
from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.events.heartbeat import Heartbeat

OCTOBER, NOVEMBER, DECEMBER = "2026-10", "2026-11", "2026-12"
TENTH = at("2026-11-10T00:00:00Z")
SILENT = "slurm/alpha"


def fill(ledger: Ledger) -> None:
    """Two accounts, one of which overruns; a run of a third that is still going; a source that fell silent."""
    for account in ("org", "org/speech", "org/vision"):
        ledger.append(told(0, AccountCreated(account=account)))
    ledger.append(
        told(0, lot("org/vision", 100, rollover="max 30")),
        told(0, lot("org/speech", 10)),
        told(0, granted("org/vision", DECEMBER, 50 * GPU_HOUR)),
    )
    ledger.append(*run_of(TENTH, TENTH + 5 * HOUR))
    ledger.append(*run_of(TENTH, TENTH + 2 * HOUR, "w2", account="org/speech"))
    eve = at("2026-11-30T20:00:00Z")
    ledger.append(told(eve, submitted("w3", account="org/vision")), told(eve, started("w3", run="r3")))
    ledger.append(told(at("2026-11-20T00:00:00Z"), Heartbeat(cluster=CLUSTER), source=SILENT))


def lot(account: str, gpu_hours: int, period: str = NOVEMBER, **keys: Any) -> Any:  # noqa: ANN401
    return msgspec.structs.replace(granted(account, period, gpu_hours * GPU_HOUR), **keys)


@dataclass(frozen=True)
class Books:
    """A ledger and the folder of its closes."""

    ledger: Ledger
    root: Path

    def closer(self, period: str = NOVEMBER, **keys: Any) -> Closer:  # noqa: ANN401
        ledger = self.ledger
        given = {"by": "ada", "clock": ledger.clock, "default": ledger.calendar, "root": self.root, **keys}
        return Closer(engine=ledger.engine, cluster=CLUSTER, period=period, **given)

    def close(self, period: str = NOVEMBER, **options: Any) -> Outcome:  # noqa: ANN401
        return run(self.closer(period), **options)

    def made(self, period: str = NOVEMBER, version: int | None = None) -> Made:
        with reading(self.ledger.engine) as reader:
            return make(reader, CLUSTER, period, version)

    def stored(self, version: int = 1) -> dict[str, Any]:
        """Return what the warehouse says of November's close."""
        with self.ledger.engine.connect() as connection:
            rows = connection.exec_driver_sql(
                f"SELECT * FROM warehouse.close WHERE period = '{NOVEMBER}' AND version = {version}"
            )
            return dict(rows.mappings().one())
