"""``gpuledger simulate compare``: one workload under two budgets."""

from pathlib import Path

import pytest
from tests.commands import simulated
from tests.commands.running import Ran, quick

from gpuledger.cli.simulating_compare import accounts_of
from gpuledger.kernel.errors import Refused
from gpuledger.simulator.playing import found


def compare(*arguments: object) -> Ran:
    return quick("simulate", "compare", *arguments, settings={})


def test_who_gets_less_and_who_waits_longer(tmp_path: Path) -> None:
    scenario, budget = simulated.scenario(tmp_path), simulated.budget(tmp_path)
    ran = compare(scenario, scenario, budget, "--json")
    assert ran.status == 0
    told = ran.json
    assert (told["scenario"], told["world"], told["seed"]) == ("small", "gpuledger", 5)
    parts = {row["account"]: row["part"] for row in told["accounts"]}
    assert parts["org/b"] == {"a": 0.25, "b": 0.75, "change": 0.5}
    assert {row["group"] for row in told["groups"]} >= {"debug", "large", "all"}
    lost = [row["account"] for row in told["accounts"] if row["gpu_hours"]["change"] < 0]
    assert told["gets_less"] == lost


def test_by_how_much_is_told_to_people(tmp_path: Path) -> None:
    """Without a share b's work leaves for a's. Where the least loss leaves first, a's gang runs in one piece."""
    scenario = simulated.scenario(tmp_path)
    scenario.write_text(scenario.read_text() + "policy: {victims: most-used}\n")
    reverse = tmp_path / "reverse.yaml"
    reverse.write_text("accounts: {org/a: {share: 1}, org/b: {share: 0}}")
    ran = compare(scenario, scenario, reverse)
    assert ran.status == 0
    less = next(line for line in ran.out.splitlines() if line.startswith("gets less under B: "))
    assert "org/b (" in less
    assert "GPU-h)" in less


def test_the_same_budget_changes_nothing(tmp_path: Path) -> None:
    scenario = simulated.scenario(tmp_path)
    told = compare(scenario, scenario, scenario, "--world", "fifo", "--json").json
    assert (told["gets_less"], told["waits_longer"]) == ([], [])
    assert {row["gpu_hours"]["change"] for row in told["accounts"]} == {0}


def test_people_get_tables_and_two_lines(tmp_path: Path) -> None:
    scenario = simulated.scenario(tmp_path)
    ran = compare(scenario, scenario, simulated.budget(tmp_path), "--world", "fifo")
    assert ran.status == 0
    assert "25.0 % → 75.0 %" in ran.out
    assert "gets less under B: nobody" in ran.out  # fifo does not look at budgets
    assert "waits longer under B (p90): nobody" in ran.out


def test_a_budget_file_names_shares_and_a_scenario_accounts(tmp_path: Path) -> None:
    scenario = found(str(simulated.scenario(tmp_path)))
    of = {spec.account: spec.share for spec in accounts_of(str(simulated.budget(tmp_path)), scenario)}
    assert (of["org/a"], of["org/b"]) == (3, 9)
    assert accounts_of("lesson", scenario) == found("lesson").accounts


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    scenario = simulated.scenario(tmp_path)
    neither = tmp_path / "neither.yaml"
    neither.write_text("nonsense: 1\n")
    for budget in (neither, tmp_path / "missing.yaml"):
        with pytest.raises(Refused, match=budget.name):
            accounts_of(str(budget), found(str(scenario)))
