"""What the tests on a real Slurm share: the scenario, played once, while a collector watches it."""

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.commands import running
from tests.commands.fixtures import Ledger
from tests.slurm import fixtures, scenario
from tests.slurm.driving import Slurm

from gpuledger.database.engine import make_engine

if TYPE_CHECKING:
    from subprocess import Popen

    from gpuledger.database.embedded import EmbeddedPostgres

slurm = fixtures.slurm


class Watcher:
    """``gpuledger collect slurm`` in the background, and the ledger that it fills.

    Args:
        ledger: The ledger; its commands find the cluster too.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._process: Popen[str] | None = None

    def start(self) -> None:
        """Begin to look every five seconds."""
        self._process = running.start("collect", "slurm", "--every", "5", settings=self.ledger.settings)

    def kill(self) -> str:
        """Kill it without warning, which must be how it ends; return what it said."""
        assert self._process is not None
        ran = running.kill(self._process)
        self._process = None
        assert ran.status == -signal.SIGKILL, ran.err
        return ran.err

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None:
            running.kill(self._process)


@pytest.fixture(scope="session")
def watcher(
    slurm: Slurm,
    postgres: "EmbeddedPostgres",
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Watcher]:
    """A collector that watches the cluster from before the first job on."""
    url = postgres.url("gpuledger_slurm")
    administrator = make_engine(postgres.url("postgres"))
    with administrator.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE gpuledger_slurm TEMPLATE {template_database}")
    administrator.dispose()
    settings = {
        **slurm.environment,
        "GPULEDGER_HOME": str(tmp_path_factory.mktemp("collector")),
        "GPULEDGER_DATABASE_URL": url,
    }
    watching = Watcher(Ledger(settings, url))
    watching.start()
    yield watching
    watching.stop()


@pytest.fixture(scope="session")
def played(slurm: Slurm, watcher: Watcher) -> Mapping[str, scenario.Played]:
    """Every case of the scenario, run to its end on the cluster; the collector is killed amid all that."""

    def replace_collector() -> None:
        watcher.kill()
        watcher.start()

    played = scenario.play(slurm, meanwhile=replace_collector)
    watcher.kill()
    return played


@pytest.fixture(scope="session")
def dump(
    slurm: Slurm, played: Mapping[str, scenario.Played], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """All that accounting knows, as somebody would save it."""
    path = tmp_path_factory.mktemp("accounting") / "sacct.json"
    path.write_text(slurm.accounting())
    return path
