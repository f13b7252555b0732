"""``gpuledger reconcile slurm``: differences with their causes, status 3 when one has none, and their repair."""

from pathlib import Path
from typing import Any

import pytest
from tests.accounting import NODE, document, job
from tests.collecting import Bin
from tests.commands.fixtures import Ledger

TAKEN_S = 1_796_000_000
FIRST = job(1, TAKEN_S - 9000, TAKEN_S - 8000)
SECOND = job(2, TAKEN_S - 8500, TAKEN_S - 7000, gpus=4)
LAST = job(9, TAKEN_S - 10, TAKEN_S - 1)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return written(tmp_path / "sacct.json", FIRST, SECOND, LAST)


def written(path: Path, *jobs: dict[str, Any]) -> Path:
    path.write_text(document(jobs))
    return path


def test_a_ledger_that_agrees_is_told_so(ledger: Ledger, record: Path) -> None:
    ledger.done("import", "slurm-sacct-json", record)

    ran = ledger("reconcile", "slurm", record)

    assert (ran.status, ran.out) == (0, "3 runs compared, 0 differ, 0 without a cause\n")


def test_claims_that_overlap_on_a_host_are_told_and_stay_charged(ledger: Ledger, tmp_path: Path) -> None:
    """Trap 35: nothing is clamped. Both jobs are charged, the status is 0, and one line says what two had at once."""
    pair = written(
        tmp_path / "sacct.json",
        job(1, TAKEN_S - 9000, TAKEN_S - 5400, gpus=8),
        job(2, TAKEN_S - 7200, TAKEN_S - 3600, gpus=8),
    )
    (tmp_path / "nodes.txt").write_text(NODE)
    ledger.done("import", "slurm-sacct-json", pair)
    ledger.done("import", "slurm-nodes", tmp_path / "nodes.txt", "--cluster", "alpha")

    ran = ledger("reconcile", "slurm", pair)
    assert (ran.status, ran.out.splitlines()[1:]) == (
        0,
        ["conflict: runs held 4.000 GPU-hours of node1 of alpha beyond what is installed"],
    )
    found = ledger.done("reconcile", "slurm", pair)
    assert found["conflict_gpu_ms"] == 8000 * 1800
    assert found["conflicts"] == [{"cluster": "alpha", "host": "node1", "gpu_ms": 8000 * 1800}]
    assert found["ledger_gpu_ms"] == found["record_gpu_ms"] == 2 * 8000 * 3600


def test_a_loss_is_shown_with_status_3_and_repaired_for_good(
    ledger: Ledger, record: Path, tmp_path: Path
) -> None:
    ledger.done("import", "slurm-sacct-json", written(tmp_path / "part.json", FIRST, LAST))

    shown = ledger("reconcile", "slurm", record)
    assert shown.status == 3
    assert "3 runs compared, 1 differ, 1 without a cause" in shown.out
    assert "lost-event" in shown.out

    found = ledger("reconcile", "slurm", record, "--json")
    assert found.status == 3
    assert found.json == {
        "ok": False,
        "runs": 3,
        "ledger_gpu_ms": 2_000_000 + 18_000,
        "record_gpu_ms": 2_000_000 + 6_000_000 + 18_000,
        "conflict_gpu_ms": 0,
        "conflicts": [],
        "repaired": 0,
        "classes": {"lost-event": 1},
        "differences": [
            {
                "class": "lost-event",
                "explained": False,
                "cluster": "alpha",
                "workload": f"2-{TAKEN_S - 8500}",
                "run": str(TAKEN_S - 8500),
                "ledger_gpu_ms": 0,
                "record_gpu_ms": 6_000_000,
                "message": found.json["differences"][0]["message"],
            }
        ],
    }
    assert found.json["differences"][0]["message"].startswith(
        "the ledger has nothing; the record has 4 GPUs 2026-"
    )

    repaired = ledger.done("reconcile", "slurm", record, "--repair")
    assert (repaired["ok"], repaired["repaired"], repaired["differences"]) == (True, 1, [])
    assert ledger.usage("account")["total_gpu_ms"] == repaired["record_gpu_ms"]
    sources = ledger.rows("SELECT DISTINCT source FROM ledger.journal WHERE workload LIKE '2-%'")
    assert sources == [("reconcile/slurm/alpha",)]
    assert ledger.done("reconcile", "slurm", record, "--repair")["repaired"] == 0


def test_what_has_a_cause_is_no_failure(ledger: Ledger, record: Path, tmp_path: Path) -> None:
    ledger.done("import", "slurm-sacct-json", written(tmp_path / "part.json", FIRST, SECOND))

    found = ledger("reconcile", "slurm", record, "--json")
    assert (found.status, found.json["classes"]) == (0, {"late": 1})

    strict = ledger("reconcile", "slurm", record, "--grace", "0", "--json")
    assert (strict.status, strict.json["classes"]) == (3, {"lost-event": 1})


def test_sacct_can_be_asked_now(
    ledger: Ledger, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Bin(tmp_path / "bin", monkeypatch)
    commands.put("sacct", f"cat {record}")
    commands.put("scontrol", "echo ClusterName = alpha")
    ledger.done("import", "slurm-sacct-json", record)

    found = ledger.done("reconcile", "slurm", "--live", "--from", str(TAKEN_S - 10_000))

    assert (found["ok"], found["runs"], found["differences"]) == (True, 3, [])


@pytest.mark.parametrize("arguments", [(), ("x.json", "--live")])
def test_either_a_file_or_live_is_needed(ledger: Ledger, arguments: tuple[str, ...]) -> None:
    refused = ledger("reconcile", "slurm", *arguments, "--json")

    assert (refused.status, refused.problem["error"]) == (2, "name a FILE or say --live")


def test_a_file_of_another_kind_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")

    assert ledger("reconcile", "slurm", tmp_path / "x").status == 2
    assert ledger("reconcile", "slurm", tmp_path / "missing").status == 2
