"""``gpuledger simulate backtest``, as people run it on a ledger that was told a simulation."""

from pathlib import Path

import pytest
from tests.commands import simulated
from tests.commands.fixtures import Ledger
from tests.commands.running import quick

DAY = ("--from", "2026-01-05", "--to", "2026-01-06")


@pytest.fixture
def told(ledger: Ledger, tmp_path: Path) -> Ledger:
    """A ledger that was told the small scenario, decided by the production policy."""
    events = tmp_path / "events.ndjson"
    ran = quick(
        "simulate", simulated.scenario(tmp_path), "--world", "gpuledger", "--events", events, settings={}
    )
    assert ran.status == 0, ran.err
    ledger.done("import", "events", events)
    return ledger


def test_a_day_is_decided_again_and_under_another_budget(told: Ledger, tmp_path: Path) -> None:
    budget, page = simulated.budget(tmp_path), tmp_path / "page.html"
    found = told.done("simulate", "backtest", *DAY, "--budget", budget, "--report", page)
    made = quick("simulate", tmp_path / "small.yaml", "--world", "gpuledger", "--json", settings={}).json
    assert (found["cluster"], found["from"], found["to"]) == (
        "small",
        "2026-01-05T00:00:00Z",
        "2026-01-06T00:00:00Z",
    )
    assert found["under"] == str(budget)
    for which in ("past", "decided"):
        assert found[which]["wait_s"]["all"] == made["wait_s"]["all"]
        assert found[which]["gpu_hours"] == made["gpu_hours"]
    assert found["other"]["wait_s"]["all"] != made["wait_s"]["all"]
    changes = {row["account"]: row["gpu_hours"]["change"] for row in found["comparison"]["accounts"]}
    assert changes["org/b"] >= 0
    assert "org/b" not in found["comparison"]["gets_less"]
    assert len(found["unknown"]) > 2
    text = page.read_text()
    assert all(f"</svg> {name}</li>" in text for name in ("past", "as decided", str(budget)))

    ran = told("simulate", "backtest", *DAY, "--budget", budget)
    assert ran.status == 0, ran.err
    assert f"gets less under {budget}: " in ran.out
    assert "What a back-test cannot know:" in ran.out
    assert all(line in ran.out for line in found["unknown"])


def test_another_policy_by_file_by_key_and_by_day(told: Ledger, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("settings: {grace_s: 600}\ncluster_settings: {small: {protection_cap_s: 900}}")
    by_file = told.done("simulate", "backtest", *DAY, "--policy", policy)
    by_key = told.done(
        "simulate", "backtest", *DAY, "--set", "policy.grace_s=600", "--set", "policy.protection_cap_s=900"
    )
    told.done("policy-data", "apply", policy, "--from", "2026-01-20", "--yes")
    by_day = told.done("simulate", "backtest", *DAY, "--in-force", "2026-01-21")
    for found in (by_key, by_day):
        assert found["other"]["wait_s"] == by_file["other"]["wait_s"]
        assert found["other"]["preemptions"] == by_file["other"]["preemptions"]
        assert found["decided"]["wait_s"] == by_file["decided"]["wait_s"]
    assert by_day["under"] == "in force 2026-01-21"
    assert by_file["other"]["wait_s"] != by_file["decided"]["wait_s"]


def test_without_anything_else_it_is_the_past_and_what_was_in_force(told: Ledger) -> None:
    found = told.done("simulate", "backtest", *DAY, "--warm-up-days", "0")
    assert (found["under"], found["other"], found["comparison"]) == (None, None, None)


def test_what_cannot_be_replayed_is_refused(told: Ledger) -> None:
    refused: dict[tuple[str, ...], str] = {
        (): "name the time that is decided again",
        ("--from", "2026-01-05", "--to", "2199-01-01"): "that is not over yet",
        ("--from", "2026-01-05", "--to", "2026-01-05T05:00:00Z"): "not whole days apart",
        ("--from", "2026-01-05T00:30:00Z", "--to", "2026-01-06T00:30:00Z"): "no full hour",
        ("--from", "2025-01-05", "--to", "2025-01-06"): "no host is known",
        (*DAY, "--as-of", "2026-01-06T00:00:00Z"): "no host is known",  # nothing was recorded yet
        (*DAY, "--set", "policy.grace=1"): "grace_s",
        (*DAY, "--set", "policy.grace_s=1,2"): "one value each",
    }
    for window, said in refused.items():
        ran = told("simulate", "backtest", *window)
        assert ran.status == 2, ran.out
        assert said in ran.err
