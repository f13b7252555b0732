"""What infra/dagster says is what Dagster takes: storage in PostgreSQL, runs that queue, a container for each."""

import importlib
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
import yaml
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster_docker import DockerRunLauncher

from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.partitions import CLUSTERS
from gpuledger_pipelines.schedules import ROLL_UP

PROCESSES, CONTAINERS = "infra/dagster/dagster.yaml", "infra/dagster/containers/dagster.yaml"


@pytest.mark.parametrize("file", [PROCESSES, CONTAINERS])
def test_the_definitions_work_under_it(repository: Path, dagster_url: str, file: str) -> None:
    with dg.DagsterInstance.from_config(str((repository / file).parent)) as instance:
        assert isinstance(instance.run_coordinator, QueuedRunCoordinator)
        assert isinstance(instance.run_launcher, DockerRunLauncher) is (file == CONTAINERS)
        assert instance.run_monitoring_enabled
        assert instance.run_retries_enabled
        assert not instance.telemetry_enabled
        instance.add_dynamic_partitions(CLUSTERS, ["c"])
        run = instance.create_run_for_job(defs.resolve_job_def(ROLL_UP), tags={"gpuledger/cluster": "c"})
    engine = sa.create_engine(dagster_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT run_id FROM runs")).scalars().all() == [run.run_id]


def test_containers_differ_in_what_starts_a_run_alone(repository: Path) -> None:
    processes, containers = (
        yaml.safe_load((repository / file).read_text()) for file in (PROCESSES, CONTAINERS)
    )
    launcher = containers.pop("run_launcher")
    assert containers == processes
    assert launcher["class"] == "DockerRunLauncher"


def test_a_run_in_a_container_has_all_that_the_daemon_was_told(repository: Path) -> None:
    compose: dict[str, Any] = yaml.safe_load(
        (repository / "infra/dagster/containers/compose.yaml").read_text()
    )
    launcher = yaml.safe_load((repository / CONTAINERS).read_text())["run_launcher"]
    assert set(launcher["config"]["env_vars"]) == set(compose["services"]["daemon"]["environment"])
    assert {"storage", "webserver", "daemon"} == set(compose["services"])


def test_the_workspace_names_the_definitions(repository: Path) -> None:
    workspace = yaml.safe_load((repository / "infra/dagster/workspace.yaml").read_text())
    (place,) = workspace["load_from"]
    module = importlib.import_module(place["python_module"]["module_name"])
    assert isinstance(module.defs, dg.Definitions)
