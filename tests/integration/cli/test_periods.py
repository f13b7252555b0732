"""``period list`` and ``period open``: what is granted is shown first, each period opens once."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

FILE = """
clusters:
  alpha: {gpus: 20, model: h100, gpus_per_host: 8}
accounts:
  org/vision: {share: 3}
  org/speech: {share: 1, grants: [{cluster: alpha, period: 2026-03, gpu_hours: 5}]}
"""


@pytest.fixture
def budgeted(ledger: Ledger, tmp_path: Path) -> Ledger:
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-03-01", "--yes")
    return ledger


def test_a_period_with_movements_has_opened_by_itself(budgeted: Ledger) -> None:
    (row,) = budgeted.done("period", "list")["periods"]
    (at,) = budgeted.rows("SELECT recorded_at FROM ledger.journal WHERE type = 'period.opened'")[0]
    installed = 20 * 744 * 3_600_000
    assert row == {
        "cluster": "alpha",
        "period": "2026-03",
        "state": "open",
        "opened_seq": 5,
        "opened_at": at.isoformat().replace("+00:00", "Z"),
        "installed_gpu_ms": installed,
        "granted_gpu_ms": installed * 3 // 4 + 5 * 3_600_000,
        "granted_gpu_hours": "11165.000",
        "version": 0,
    }


def test_the_next_period_is_shown_then_opened_once(budgeted: Ledger) -> None:
    heads = budgeted.heads()
    shown = budgeted("period", "open", "2026-04", "--cluster", "alpha", "--dry-run")
    assert (shown.status, shown.out) == (0, "2026-04 of alpha not opened: 2 grants\n")
    assert shown.err.splitlines() == [
        "+ grant    org/speech  alpha 2026-04  3,600.000 GPU-hours",
        "+ grant    org/vision  alpha 2026-04  10,800.000 GPU-hours",
    ]
    assert budgeted.heads() == heads

    ((before,),) = budgeted.rows("SELECT max(recorded_at) FROM ledger.journal")
    done = budgeted.done("period", "open", "2026-04", "--cluster", "alpha")
    assert done["applied"] is True
    assert {grant["account"]: grant["gpu_hours"] for grant in done["grants"]} == {
        "org/speech": "3600.000",
        "org/vision": "10800.000",
    }
    assert [row["period"] for row in budgeted.done("period", "list")["periods"]] == ["2026-03", "2026-04"]
    asked = budgeted.done("period", "list", "--as-of", before.isoformat())
    assert [row["period"] for row in asked["periods"]] == ["2026-03"]
    again = budgeted("period", "open", "2026-04", "--cluster", "alpha")
    assert (again.status, again.out) == (2, "")
    assert "2026-04 of alpha was opened before, by row" in again.err
    speech = budgeted.done("balance", "org/speech", "--cluster", "alpha", "--period", "2026-04")
    assert speech["available_gpu_hours"] == "3600.000"
    budgeted.checked_digest()


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["2026-13", "--cluster", "alpha"], 2, "not of the form YYYY-MM"),
        (["2025-12", "--cluster", "alpha"], 2, "alpha has no GPU installed in 2025-12"),
        (["2026-04", "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
        (["2026-04"], 2, "--cluster"),
    ],
)
def test_what_cannot_be_opened_is_refused(
    budgeted: Ledger, arguments: list[str], status: int, expected: str
) -> None:
    ran = budgeted("period", "open", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err


def test_movements_without_inventory_are_listed_as_unopened(ledger: Ledger, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,3600.0,1,3600.0,vc\n")
    ledger.done("import", "philly", trace)
    (row,) = ledger.done("period", "list", "--cluster", "philly")["periods"]
    assert (row["period"], row["state"], row["opened_seq"]) == ("2017-10", "unopened", None)
    people = ledger("period", "list")
    assert people.status == 0
    assert "unopened" in people.out
