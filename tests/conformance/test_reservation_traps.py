"""What a reservation keeps empty is a state of its own: neither free nor anybody's, and nothing that a job held."""

import datetime as dt

import pytest
from tests.integration.pipelines.rows import Database
from tests.integration.pipelines.running import roll_up, why
from tests.unit.sources.slurm.live import FIXTURES

from gpuledger.database.engine import make_engine, reading
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.ledger.usage import By, UsageQuery, usage
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

BEGAN = 1_796_050_667
"""2026-11-30T14:57:47Z: a real Slurm reserves one of two hosts of eight GPUs; twenty seconds later it is free again."""

PICTURES = {"whole": BEGAN, "running": BEGAN + 5, "gone": BEGAN + 20}
"""A job of four GPUs ran in the reservation from its fourth second to its thirteenth."""


@pytest.mark.parametrize("form", ["txt", "json.gz"], ids=["scontrol show node", "sinfo --json"])
@pytest.mark.trap(34, "slurm-nodes")
@pytest.mark.trap(34, "slurm-sacct-json")
def test_34_what_a_reservation_keeps_empty_is_reserved_and_nobodys(
    database_url: str, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    engine = make_engine(database_url)
    intake = Intake(engine, SystemClock(), Calendar())
    files = [("slurm-nodes", f"lab-reserved-{name}.{form}", at_s) for name, at_s in PICTURES.items()]
    for name, file, at_s in [*files, ("slurm-sacct-json", "lab-reserved-sacct.json.gz", None)]:
        options = ImportOptions(cluster="alpha", at_s=at_s)
        report, _ = run_import(source(name), FIXTURES / file, options, LedgerSink(intake), lambda _: None)
        assert report.dead_lettered == 0
    with reading(engine) as reader:
        charged = usage(reader, UsageQuery(by=By.ACCOUNT), BEGAN + 3600)
    assert {row.key: row.gpu_ms for row in charged.rows} == {"alpha/proj-a1": 4 * 9 * 1000}
    engine.dispose()
    day = dt.date(2026, 11, 30)
    result = roll_up(database_url, day, day, now_s=BEGAN + 3600, cluster="alpha")
    assert result.success, why(result)
    names = ("reserved", "allocated", "unhealthy", "maintenance", "residual")
    for table in ("layer_metrics_hour", "layer_metrics_day"):
        rows = Database(database_url).table(table)
        sums = {name: sum(row[f"{name}_gpu_ms"] or 0 for row in rows) / 1000 for name in names}
        assert sums == {
            "reserved": 8 * 20 - 4 * 9, "allocated": 4 * 9, "unhealthy": 0, "maintenance": 0, "residual": 0,
        }  # fmt: skip
        assert all(
            row["free_gpu_ms"] == row["installed_gpu_ms"] - row["allocated_gpu_ms"] - row["reserved_gpu_ms"]
            for row in rows
        )
