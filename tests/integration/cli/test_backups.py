"""``backup`` and ``restore``: out of one database, into a data folder of its own."""

from pathlib import Path

from tests.commands.fixtures import Ledger

FILE = """
clusters:
  alpha: {gpus: 8, model: h100}
accounts:
  org/vision:
    share: 1
    grants:
      - {cluster: alpha, period: 2026-12, gpu_hours: 100}
"""


def test_a_ledger_is_brought_back_in_another_folder(ledger: Ledger, own_home: Ledger, tmp_path: Path) -> None:
    (tmp_path / "budget.yaml").write_text(FILE)
    ledger.done("budget", "apply", tmp_path / "budget.yaml", "--from", "2026-12-01", "--yes")
    backup = tmp_path / "ledger.dump"
    told = ledger.done("backup", backup)
    assert {head["book"] for head in told["heads"]} == {"alpha", "~org"}
    balance = ledger.done("balance", "org/vision", "--cluster", "alpha", "--period", "2026-12")

    found = own_home.done("restore", backup)
    assert (found["ok"], found["differences"], found["faults"]) == (True, [], [])
    again = own_home.done("balance", "org/vision", "--cluster", "alpha", "--period", "2026-12")
    assert {**again, "as_of": None} == {**balance, "as_of": None}

    twice = own_home("restore", backup)
    assert twice.status == 2
    assert "holds schemas of a ledger" in twice.err
    assert ledger("backup", backup).status == 2


def test_people_read_what_was_written(ledger: Ledger, tmp_path: Path) -> None:
    ran = ledger("backup", tmp_path / "x")
    assert ran.status == 0
    assert f"{tmp_path / 'x'}: " in ran.out
    assert ledger("restore", tmp_path / "gone").status == 4
