"""Dagster's event log in PostgreSQL writes what a run plans in a few statements."""

import datetime as dt
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from gpuledger_pipelines.definitions import ASSETS, defs
from gpuledger_pipelines.event_log_postgres import BatchingPostgresEventLogStorage
from gpuledger_pipelines.partitions import CLUSTERS, range_tags
from gpuledger_pipelines.schedules import ROLL_UP

_COMMITS = (
    "SELECT pg_stat_force_next_flush(), xact_commit FROM pg_stat_database WHERE datname = current_database()"
)


def test_a_range_of_days_is_planned_in_a_few_statements(
    repository: Path, dagster_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 100 days of each table is planned, and what Dagster knows of an asset is its newest plan."""
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "2000")
    first, last = dt.date(2024, 1, 1), dt.date(2024, 4, 9)
    with dg.DagsterInstance.from_config(str(repository / "infra/dagster")) as instance:
        assert isinstance(instance.event_log_storage, BatchingPostgresEventLogStorage)
        instance.add_dynamic_partitions(CLUSTERS, ["c"])
        job = defs.resolve_job_def(ROLL_UP)
        engine = sa.create_engine(dagster_url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            before = connection.execute(sa.text(_COMMITS)).one()[1]
        run = instance.create_run_for_job(job, tags=range_tags("c", first, last))
        with engine.connect() as connection:
            commits = connection.execute(sa.text(_COMMITS)).one()[1] - before
            planned = connection.execute(
                sa.text(
                    "SELECT count(*), count(DISTINCT (asset_key, partition)), count(DISTINCT asset_key) FROM event_logs"
                    " WHERE run_id = :r AND dagster_event_type = 'ASSET_MATERIALIZATION_PLANNED'"
                ),
                {"r": run.run_id},
            ).one()
        tables = len(ASSETS)
        assert tuple(planned) == (100 * tables, 100 * tables, tables)
        assert commits < 300
        records = instance.get_latest_planned_materialization_info(dg.AssetKey("usage_hour"))
    assert records is not None
    assert records.run_id == run.run_id
