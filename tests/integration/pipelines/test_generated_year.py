"""A generated year, rolled up in one run; a month is sealed, and then a fact of that month comes late.

In its short form five weeks of four hosts; in full the 1 024 GPUs, 15 accounts and 150 users of a year.
"""

import datetime as dt
import hashlib
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.generated_year import HOUR_S, Year, book
from tests.integration.pipelines.rows import TABLES
from tests.integration.pipelines.running import why
from tests.integration.pipelines.watchers import Watcher, asked, dagster_in

from gpuledger.close.run import run
from gpuledger.close.steps import Closer
from gpuledger.database.engine import make_engine
from gpuledger.events import workload
from gpuledger.events.envelope import make
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger_pipelines.defs.budget.assets import budget_vs_actual
from gpuledger_pipelines.defs.late.touched import PATIENCE_S

pytestmark = pytest.mark.timeout(3600)

FORMS = {
    "short": Year(seconds(dt.datetime(2025, 1, 25, tzinfo=dt.UTC)), days=36, hosts=4, runs_per_day=12),
    "full": Year(seconds(dt.datetime(2025, 1, 1, tzinfo=dt.UTC)), days=365, hosts=128, runs_per_day=410),
}
LATE_ON = dt.date(2025, 1, 29)
"""The day on which the late run began; it ended the day after."""

BY_PERIOD = {"budget_vs_actual": {"2025-01", "2025-02"}, "forecast": {"2025-01"}}
"""Tables of a row a period, and the periods that the late run changes."""

Versions = dict[str, Counter[tuple[object, ...]]]


def versions(engine: sa.Engine) -> Versions:
    """Each row of each table, with the transaction that wrote it, by the day (or period) that it is about."""
    found: Versions = {}
    with engine.connect() as connection:
        for table in TABLES:
            at = "bucket_at" if "bucket" in table else "hour_at" if "hour" in table else None
            day = f"({at} AT TIME ZONE 'UTC')::date" if at else "period" if table in BY_PERIOD else "day"
            rows = connection.execute(
                sa.text(f"SELECT {day}::text, xmin::text, count(*) FROM warehouse.{table} GROUP BY 1, 2")
            )
            found[table] = Counter({(day, xmin): count for day, xmin, count in rows})
    return found


def sealed(engine: sa.Engine, folder: Path) -> tuple[list[object], dict[str, str]]:
    """What was sealed: rows with the transactions that wrote them, and the digest of each file."""
    with engine.connect() as connection:
        rows = [
            tuple(row)
            for table in ("statement", "close")
            for row in connection.execute(
                sa.text(f"SELECT xmin::text, t::text FROM warehouse.{table} AS t ORDER BY 2")
            )
        ]
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return list(rows), {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def late_run(year: Year, url: str) -> None:
    """Tell of a run in January that nobody had told of, over midnight, as the last host's free GPU."""
    start_s = seconds(dt.datetime.combine(LATE_ON, dt.time(23), dt.UTC))
    name, cluster = "late", year.cluster
    facts = (
        (
            start_s,
            workload.Submitted(
                cluster=cluster, workload=name, account=year.leaves[0], user="u0", gpus_milli=10
            ),
        ),
        (
            start_s,
            workload.Started(
                cluster=cluster, workload=name, run="r", attempt=1, gpus_milli=10, hosts=["h000"]
            ),
        ),
        (start_s + 2 * HOUR_S, workload.Ended(cluster=cluster, workload=name, run="r", reason="completed")),
    )
    intake = Intake(make_engine(url), FixedClock(instant(year.end_s)), Calendar())
    intake.take(
        [make(id=f"late/{n}", source="late", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(facts)]
    )
    intake.engine.dispose()


def test_a_late_fact_restates_its_days_of_a_year_and_nothing_that_is_sealed(
    database_url: str, tmp_path: Path, test_form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    year, engine, closes = FORMS[test_form], make_engine(database_url), tmp_path / "closes"
    book(database_url, year)
    clock = FixedClock(instant(year.end_s))
    run(
        Closer(
            engine=engine, cluster=year.cluster, period="2025-01", by="test", clock=clock, default=Calendar(),
            root=closes,
        )
    )  # fmt: skip
    with dagster_in(tmp_path / "dagster", monkeypatch) as instance:
        watcher = Watcher(database_url, instance, year.end_s + PATIENCE_S)
        (backfill,) = watcher.tick()
        last = instant(year.end_s - 1).date()
        assert asked(backfill) == (f"year|{instant(year.start_s).date()}", f"year|{last}")
        whole = watcher.run(backfill)
        assert whole.success, why(whole)

        statement, before = sealed(engine, closes), versions(engine)
        assert statement[0]
        assert statement[1]
        late_run(year, database_url)
        watcher.now_s += 60
        restating, adjusting = watcher.tick()
        assert asked(restating) == ("year|2025-01-29", "year|2025-01-30")
        # January is sealed, so the charge is an adjustment in the next period; that one is over too.
        assert adjusting.asset_selection == [budget_vs_actual.key]
        for request in (restating, adjusting):
            again = watcher.run(request)
            assert again.success, why(again)
        assert watcher.tick() == []
    after = versions(engine)
    for table in TABLES:
        touched = BY_PERIOD.get(table, {"2025-01-29", "2025-01-30"})
        assert {at for at, _ in after[table] - before[table]} == touched, table
        assert {at for at, _ in before[table] - after[table]} == touched, table
    assert sealed(engine, closes) == statement
    engine.dispose()
