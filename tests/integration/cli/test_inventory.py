"""``inventory apply``: the difference first, host by host."""

from pathlib import Path

from tests.commands.fixtures import Ledger

FILE = "clusters: {alpha: {hosts: [{name: a1, gpus: 8, model: h100}, {name: a2, gpus: 4, model: h100}]}}"


def test_shown_applied_and_applied_again(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(FILE)
    shown = ["+ host     alpha a1  8 x h100", "+ host     alpha a2  4 x h100"]

    dry = ledger("inventory", "apply", path, "--dry-run", "--json")
    assert (dry.status, dry.json) == (0, {"changes": shown, "applied": False, "opened": {}})
    assert dry.err.splitlines() == shown
    assert ledger.heads() == []

    assert ledger("inventory", "apply", path, "--from", "2026-03-01").out == "2 changes applied\n"
    assert ledger("inventory", "apply", path).out == "nothing to change\n"
    assert ledger.rows("SELECT host, gpus, from_at::date::text FROM ledger.hosts ORDER BY host") == [
        ("a1", 8, "2026-03-01"),
        ("a2", 4, "2026-03-01"),
    ]
    ledger.checked_digest()


def test_periods_that_waited_for_capacity_open(ledger: Ledger, tmp_path: Path) -> None:
    trace, path = tmp_path / "t.csv", tmp_path / "inventory.yaml"
    trace.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,3600.0,1,3600.0,vc\n")
    path.write_text("clusters: {philly: {gpus: 2, model: p100}}")
    ledger.done("import", "philly", trace)
    done = ledger.done("inventory", "apply", path, "--from", "2017-01-01")
    assert done["opened"] == {"philly": ["2017-10"]}
    assert ledger.done("balance", "philly/vc")["granted_gpu_hours"] == "1488.000"


def test_a_missing_file_is_bad_usage(ledger: Ledger, tmp_path: Path) -> None:
    ran = ledger("inventory", "apply", tmp_path / "none.yaml")
    assert ran.status == 2
    assert "no such file" in ran.err
