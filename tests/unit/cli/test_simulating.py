"""``gpuledger simulate``: what it prints, writes and refuses."""

import json
from pathlib import Path

import pytest
from tests.commands import simulated
from tests.commands.running import Ran, gpuledger, quick

from gpuledger.simulator.worlds.registry import WORLDS


def simulate(*arguments: object) -> Ran:
    return quick("simulate", *arguments, settings={})


def test_one_world_prints_its_document(tmp_path: Path) -> None:
    ran = simulate(simulated.scenario(tmp_path), "--world", "fifo", "--json")
    assert ran.status == 0
    found = ran.json
    assert (found["scenario"], found["world"], found["seed"], found["days"]) == ("small", "fifo", 5, 1)
    assert found["jobs"] == 81
    assert found["wait_s"]["largest"]["count"] == 0
    assert found["wait_s"]["large"]["p50"] > 0
    assert found["residual_gpu_ms"] == 0
    assert found["wall_s"] > 0
    assert "simulate small, fifo: 0 %" in ran.err


def test_all_worlds_run_on_the_same_workload_side_by_side(tmp_path: Path) -> None:
    ran = simulate(simulated.scenario(tmp_path), "--json")
    both = ran.json["simulations"]
    assert [each["world"] for each in both] == list(WORLDS)
    assert {each["jobs"] for each in both} == {81}


def test_people_get_a_table(tmp_path: Path) -> None:
    ran = simulate("run", simulated.scenario(tmp_path), "--world", "fifo", "--world", "gpuledger")
    assert ran.status == 0
    assert ran.out.startswith("small: 16 GPUs, 1 day, seed 5\n")
    assert {"delivered / owed (window)", "wait, debug: p90", "org/b"} <= {
        line.split("  ")[0].strip() for line in ran.out.splitlines()
    }


def test_seed_and_days_may_be_others(tmp_path: Path) -> None:
    found = simulate("--world", "fifo", simulated.scenario(tmp_path), "--seed", 9, "--days", 2, "--json").json
    assert (found["seed"], found["days"]) == (9, 2)


def test_again_gives_the_same_but_for_the_time_it_took_whatever_the_order_of_hashes(tmp_path: Path) -> None:
    arguments = ("simulate", simulated.scenario(tmp_path), "--world", "gpuledger", "--json")
    one, other = (gpuledger(*arguments, settings={"PYTHONHASHSEED": seed}).json for seed in ("1", "2"))
    assert json.dumps({**one, "wall_s": 0}) == json.dumps({**other, "wall_s": 0})


def test_events_are_of_one_world(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    ran = simulate(simulated.scenario(tmp_path), "--world", "fifo", "--events", events, "--json")
    types = [json.loads(line)["type"] for line in events.read_text().splitlines()]
    assert types.count("org.gpuledger.workload.submitted.v1") == ran.json["jobs"]
    assert types[:2] == ["org.gpuledger.account.created.v1", "org.gpuledger.budget.share_set.v1"]
    several = simulate(simulated.scenario(tmp_path), "--world", "all", "--events", events, "--json")
    assert several.status == 2
    assert "one world" in several.problem["error"]


def test_what_was_submitted_can_be_put_before_another_simulator(tmp_path: Path) -> None:
    """And read back: it is the same demand."""
    swf, again = tmp_path / "small.swf", tmp_path / "again.yaml"
    found = simulate(simulated.scenario(tmp_path), "--world", "fifo", "--swf", swf, "--json").json
    lines = [line for line in swf.read_text().splitlines() if not line.startswith(";")]
    assert len(lines) == found["jobs"]
    assert all(len(line.split()) == 18 for line in lines)
    again.write_text("cluster: {hosts: 2}\ndays: 1\nwarm_up_days: 0\ndemand: {trace: swf, path: small.swf}")
    read = simulate(again, "--world", "fifo", "--json").json
    assert read["jobs"] == found["jobs"]
    assert sum(read["gpu_hours"].values()) == pytest.approx(sum(found["gpu_hours"].values()))
    several = simulate(tmp_path / "small.yaml", "--swf", swf, "--json")
    assert (several.status, "one world" in several.problem["error"]) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["institut"], "institut"),
        (["missing.yaml"], "missing.yaml"),
        (["institute", "--world", "fife"], "no world 'fife'"),
        (["institute", "--days", "0"], "--days"),
        (["institute", "--nonsense"], "--nonsense"),
        ([], "Usage"),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(arguments: list[str], told: str) -> None:
    ran = simulate(*arguments)
    assert ran.status == 2
    assert told in ran.err + ran.out


def test_help_names_the_commands() -> None:
    ran = simulate("--help")
    assert ran.status == 0
    assert all(f"  {name} " in ran.out for name in ("run", "sweep", "compare"))
