"""``gpuledger archive`` as people run it."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.cli.archiving import run
from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings

START_S = seconds(dt.datetime(2026, 2, 10, 9, tzinfo=dt.UTC))
DAYS = ("--cluster", "alpha", "--from", "2026-02-10", "--to", "2026-02-11")


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    """Eight GPUs for five hours."""
    named = {"cluster": "alpha", "workload": "w1"}
    facts = [
        (START_S, Submitted(**named, account="org/vision", user="ada", gpus_milli=8000)),
        (START_S, Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0001"])),
        (START_S + 5 * 3600, Ended(**named, run="r1", reason="completed")),
    ]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take(
        [make(id=f"{n}", source="test", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(facts)]
    )
    engine.dispose()
    return ledger


def test_a_day_is_written_verified_and_rolled_up(used: Ledger, tmp_path: Path) -> None:
    place = {"GPULEDGER_ARCHIVE": str(tmp_path / "archive")}
    written = used("archive", "write", *DAYS, **place)
    assert written.status == 0, written.err
    assert written.out.startswith("alpha: 1 day, 2 files written (1 rows, ")
    rolled = used("archive", "rollup", **place)
    assert ["org/vision", "allocated", "40.000", "0.000", "0.000"] in [
        line.split() for line in rolled.out.splitlines()
    ]
    compared = used("archive", "rollup", "--compare", **place)
    assert compared.status == 3
    assert "5 differences from the warehouse" in compared.out
    (tmp_path / "archive/usage/v1/cluster=alpha/day=2026-02-10/part-0.parquet").unlink()
    broken = used("archive", "verify", **place)
    assert broken.status == 3
    assert "part-0.parquet is missing" in broken.out
    assert "gpuledger archive write --cluster alpha --from 2026-02-10" in broken.err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("write", "--from", "yesterday", "--to", "2026-02-11"), 2),
        (("write", "--cluster", "nowhere"), 4),
        (("rollup", "--engine", "abacus"), 2),
    ],
)
def test_errors_are_one_json_object_on_stderr(
    used: Ledger, tmp_path: Path, arguments: tuple[str, ...], status: int
) -> None:
    ran = used("archive", *arguments, "--json", GPULEDGER_ARCHIVE=str(tmp_path / "archive"))
    assert (ran.status, ran.out) == (status, "")
    assert ran.problem["exit"] == status
    assert ran.problem["hint"]


def test_without_arrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Refused, match="needs Apache Arrow") as told:
        run(Settings(), "verify", [])
    assert told.value.hint == "pip install 'gpuledger[pipelines]'"
