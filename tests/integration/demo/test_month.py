"""The demo's month told to a ledger: what its four people are promised is there."""

import json
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.demo import month, people
from gpuledger.kernel.amounts import people_gpu_hours as hours
from gpuledger.kernel.errors import GpuledgerError

NAMES = {"maya", "tomas", "ines", "omar"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, month.Month]:
    path = tmp_path_factory.mktemp("month") / "institute.jsonl"
    month.write(path)
    return path, month.read(path)


def test_it_is_a_month_of_the_past_in_which_nothing_goes_on(written: tuple[Path, month.Month]) -> None:
    path, told = written
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(events) == told.events
    asked = {e["data"]["workload"] for e in events if e["type"].endswith("workload.submitted.v1")}
    ended = [e["data"]["workload"] for e in events if e["type"].endswith("workload.ended.v1")]
    assert sorted(ended) == sorted(asked), "each ends, and once"
    assert max(e["time"] for e in events) == "2026-02-01T00:00:00Z"
    assert told.end_s > month.BUSY_S


def test_what_its_people_are_promised_is_in_the_ledger(
    written: tuple[Path, month.Month], ledger: Ledger
) -> None:
    path, told = written
    report = ledger.done("import", "events", path)
    assert (report["dead_lettered"], report["records"]) == (0, told.events)
    folk = {person.key: person for person in people.people(told.preempted)}
    assert folk.keys() == NAMES
    balance = ledger.done("balance", people.PI_ACCOUNT, "--cluster", month.CLUSTER, "--period", month.PERIOD)
    assert balance["available_gpu_ms"] < 0 < balance["granted_gpu_ms"], (
        "the investigator is beyond the budget"
    )
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    charged, granted = (hours(balance[name]) for name in ("charged_gpu_ms", "granted_gpu_ms"))
    assert f"{charged} GPU-h charged of {granted} budgeted" in readme
    job = folk["ines"].page.rpartition("workload=")[2]
    story = ledger.done("why", job, "--cluster", month.CLUSTER)
    assert story["account"] == people.RESEARCHER_ACCOUNT
    assert [event["what"] for event in story["events"]].count("preempted") == 1
    sick = ledger.rows(
        "SELECT state FROM ledger.hosts WHERE host = :host AND until_seq IS NULL ORDER BY from_at DESC LIMIT 1",
        host=month.SICK_HOST,
    )
    assert sick == [("unhealthy",)]


def test_a_simulation_that_fails_says_so(tmp_path: Path) -> None:
    with (
        month.written_meanwhile(tmp_path / "no such folder" / "month.jsonl") as wait,
        pytest.raises(GpuledgerError, match="the simulation of the month ended with exit status 1"),
    ):
        wait()
