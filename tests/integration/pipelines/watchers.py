"""The sensor on the watermark, driven as Dagster's daemon drives it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from gpuledger.kernel.clock import FixedClock, instant
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.late.sensors import tick
from gpuledger_pipelines.event_log import BATCH_SIZE, BATCH_VARIABLE
from gpuledger_pipelines.partitions import CLUSTERS, RANGE_END_TAG, RANGE_START_TAG
from gpuledger_pipelines.resources import Warehouse
from gpuledger_pipelines.schedules import ROLL_UP


@contextmanager
def dagster_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """Keep runs in a folder, with the event log that production has."""
    folder.mkdir(exist_ok=True)
    batching = {"module": "gpuledger_pipelines.event_log", "class": "BatchingSqliteEventLogStorage"}
    overrides = {"event_log_storage": {**batching, "config": {"base_dir": str(folder / "events")}}}
    monkeypatch.setenv(BATCH_VARIABLE, BATCH_SIZE)
    with dg.DagsterInstance.local_temp(str(folder), overrides=overrides) as instance:
        yield instance


def asked(request: dg.RunRequest) -> tuple[str, str]:
    """Return the first and the last partition that a run is asked for."""
    return request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG]


class Watcher:
    """A sensor as the daemon drives it: cursor, partitions and runs are kept."""

    def __init__(self, url: str, instance: dg.DagsterInstance, now_s: int) -> None:
        self.url, self.instance, self.now_s = url, instance, now_s
        self.cursor: str | None = None

    def tick(self) -> list[dg.RunRequest]:
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor, definitions=defs) as context:
            result = tick(context, Warehouse(url=self.url), FixedClock(instant(self.now_s)))
        self.cursor = result.cursor
        for request in result.dynamic_partitions_requests or ():
            self.instance.add_dynamic_partitions(CLUSTERS, list(request.partition_keys))
        return list(result.run_requests or ())

    def run(self, request: dg.RunRequest, url: str | None = None) -> dg.ExecuteInProcessResult:
        """Do as the daemon would; of a part of a job the resources cannot be replaced."""
        return defs.resolve_job_def(ROLL_UP).execute_in_process(
            instance=self.instance,
            tags=request.tags,
            asset_selection=list(request.asset_selection) if request.asset_selection else None,
            resources=None if request.asset_selection else {"warehouse": Warehouse(url=url or self.url)},
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
