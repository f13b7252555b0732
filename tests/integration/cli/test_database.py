"""The embedded PostgreSQL of a data folder: starts when needed, stops with its last user."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url
from tests.commands.fixtures import Ledger
from tests.commands.running import kill, start
from tests.commands.traces import ALEX, PHILLY

from gpuledger.database.engine import make_engine


def servers(home: Path) -> list[int]:
    """Return the PostgreSQL servers that run on the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(home / "postgres").encode() in command and b"-D" in command:
            found.append(int(entry.name))
    return found


@pytest.fixture
def home(own_home: Ledger) -> Iterator[Ledger]:
    """A folder of the test's own, with a space in its name, whose server does not outlive the test."""
    yield own_home
    for pid in servers(own_home.home):
        os.kill(pid, signal.SIGKILL)


def test_the_url_of_the_database_and_nothing_stays_behind(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = Ledger(
        {"GPULEDGER_HOME": str(tmp_path_factory.mktemp("u") / "a b")}
    )  # short: it must hold a socket
    ran = home.fresh("db", "url")

    assert ran.status == 0
    url = make_url(ran.out.strip())
    assert (url.drivername, url.database) == ("postgresql+psycopg", "gpuledger")
    assert url.query["host"] == str(home.home / "postgres")
    assert home("db", "url", "--json").json == {"url": ran.out.strip()}
    assert servers(home.home) == []


def test_the_url_connects_while_somebody_uses_the_server(home: Ledger) -> None:
    assert home("db", "upgrade").status == 0
    process = start("import", "philly", PHILLY, settings=home.settings)
    try:
        _wait_for_its_server(home, process)
        url = home("db", "url").out.strip()
        assert len(servers(home.home)) == 1
        engine = make_engine(url)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM ledger.books").scalar() is not None
        engine.dispose()
        assert process.poll() is None, "the import goes on: the command did not take its server away"
    finally:
        kill(process)


def test_deleting_the_folder_resets_everything(home: Ledger) -> None:
    home.done("import", "clustercockpit", ALEX)
    assert home.hours("cluster", "--cluster", "alex") == {"alex": "3980.037"}

    shutil.rmtree(home.home)

    assert home.usage("cluster")["rows"] == []
    assert home.done("import", "clustercockpit", ALEX)["accepted"] == 544


def test_a_killed_command_does_not_keep_the_server_for_ever(home: Ledger) -> None:
    assert home("db", "upgrade").status == 0
    process = start("import", "philly", PHILLY, settings=home.settings)
    _wait_for_its_server(home, process)
    assert kill(process).status == -signal.SIGKILL
    assert len(servers(home.home)) == 1, "nobody could tell it"

    assert home("usage").status == 0

    assert servers(home.home) == []


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ending_the_whole_terminal_leaves_no_server(home: Ledger, how: signal.Signals, status: int) -> None:
    """Ctrl-C goes to every process of the terminal's group."""
    assert home("db", "upgrade").status == 0
    process = start("import", "philly", PHILLY, settings=home.settings)
    _wait_for_its_server(home, process)
    os.killpg(process.pid, how)
    process.communicate(timeout=60)

    assert process.returncode == status
    assert servers(home.home) == []


def test_upgrade_and_check(ledger: Ledger) -> None:
    upgraded = ledger("db", "upgrade")
    assert (upgraded.status, upgraded.out) == (0, "")
    assert upgraded.err.startswith("schema at revision ")
    checked = ledger("db", "check")
    assert checked.status == 0
    assert "models and schema agree" in checked.err


def test_a_schema_that_is_not_the_models_is_a_problem(ledger: Ledger) -> None:
    ledger.change("ALTER TABLE ledger.waits ADD COLUMN surprise integer")
    checked = ledger("db", "check")
    assert checked.status == 3
    assert "surprise" in checked.err


def _wait_for_its_server(home: Ledger, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 120
    while not (servers(home.home) and process.pid in _users(home.home)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _users(home: Path) -> list[int]:
    path = home / "postgres" / ".handle_pids.json"
    return [] if not path.exists() else list(json.loads(path.read_text() or "[]"))
