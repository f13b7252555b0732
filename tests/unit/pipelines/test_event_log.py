"""A batch is stored whole or not at all, in files that the stock storage reads."""

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage

from gpuledger_pipelines import home
from gpuledger_pipelines.event_log import BATCH_VARIABLE, BatchingSqliteEventLogStorage

DAYS = dg.DailyPartitionsDefinition("2024-01-01")
RANGE = {
    "dagster/asset_partition_range_start": "2024-01-01",
    "dagster/asset_partition_range_end": "2024-01-10",
}


@dg.asset(partitions_def=DAYS)
def table() -> dg.MaterializeResult:  # type: ignore[type-arg]
    return dg.MaterializeResult(metadata={"rows": 7}, tags={"colour": "red"})


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv(home.VARIABLE, str(tmp_path))
    monkeypatch.delenv(BATCH_VARIABLE, raising=False)
    home.prepare(tmp_path)
    with dg.DagsterInstance.get() as instance:
        yield instance
    os.environ.pop(BATCH_VARIABLE, None)


def test_the_folder_we_write_uses_it(instance: dg.DagsterInstance) -> None:
    assert isinstance(instance.event_log_storage, BatchingSqliteEventLogStorage)
    assert int(os.environ[BATCH_VARIABLE]) > 0


def test_the_stock_storage_reads_what_was_batched(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    result = dg.materialize([table], instance=instance, tags=RANGE)
    stock = SqliteEventLogStorage(str(tmp_path / "history" / "runs"))
    events = dg.DagsterEventType.ASSET_MATERIALIZATION
    by_partition = stock.get_materialized_partitions(dg.AssetKey("table"))
    assert by_partition == {f"2024-01-{day:02}" for day in range(1, 11)}
    assert len(stock.get_logs_for_run(result.run_id, of_type=events)) == 10
    (record,) = stock.get_asset_records([dg.AssetKey("table")])
    newest = record.asset_entry.last_materialization
    assert newest is not None
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.partition == "2024-01-10"
    assert record.asset_entry.last_run_id == result.run_id


def test_a_batch_that_fails_leaves_nothing(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = dg.materialize([table], instance=instance, tags=RANGE)
    storage = instance.event_log_storage
    events = storage.get_logs_for_run(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    count = len(storage.get_logs_for_run(result.run_id))
    calls = iter([None, None, OSError("disk full")])
    original = type(storage).store_event

    def failing(self: BatchingSqliteEventLogStorage, event: dg.EventLogEntry) -> None:
        if (fault := next(calls)) is not None:
            raise fault
        original(self, event)

    monkeypatch.setattr(BatchingSqliteEventLogStorage, "store_event", failing)
    with pytest.raises(OSError, match="disk full"):
        storage.store_event_batch(events)
    assert len(storage.get_logs_for_run(result.run_id)) == count
