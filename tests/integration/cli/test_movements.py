"""``movements``: the rows that explain a balance."""

from pathlib import Path

from tests.commands.fixtures import Ledger

FILE = """
clusters:
  alpha: {gpus: 20, model: h100, gpus_per_host: 8}
accounts:
  org/vision: {grants: [{cluster: alpha, period: 2026-03, gpu_hours: 100}]}
  org/speech: {grants: [{cluster: alpha, period: 2026-03, gpu_hours: 5}]}
"""
WHERE = ("--cluster", "alpha", "--period", "2026-03")


def test_what_moved_a_balance_is_listed_and_sums_to_it(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-03-01", "--yes")
    ledger.done("budget", "transfer", "org/vision", "org/speech", "30", *WHERE)
    found = ledger.done("movements", "org/vision", *WHERE)
    assert [(m["code"], m["gpu_hours"]) for m in found["movements"]] == [
        ("grant", "100.000"),
        ("transfer", "-30.000"),
    ]
    assert found["total_gpu_ms"] == ledger.done("balance", "org/vision", *WHERE)["own_available_gpu_ms"]
    last = found["movements"][-1]
    assert ledger.done("movements", "org/vision", *WHERE, "--since", last["recorded_at"])["movements"] == []
    shown = ledger("movements", "org", *WHERE)
    assert (shown.status, "org on alpha: +105.000 GPU-hours" in shown.out) == (0, True)
    assert ledger("movements", "org/nobody", *WHERE).status == 4


def test_a_limit_that_was_set_above_an_account_is_listed_apart(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-03-01", "--yes")
    assert ledger.done("movements", "org/vision", *WHERE)["limits"] == []
    ledger.done("budget", "grant", "org", "40", *WHERE)
    found = ledger.done("movements", "org/vision", *WHERE)
    assert [(m["account"], m["period"], m["gpu_hours"]) for m in found["limits"]] == [
        ("org", "2026-03", "40.000")
    ]
    assert found["total_gpu_hours"] == "100.000", "it moves no budget"
    shown = ledger("movements", "org/vision", *WHERE).out
    assert "limits that were changed" in shown
    assert "+40.000" in shown
