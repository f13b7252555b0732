"""``gpuledger enforce``: shown, applied, held against drift, from the command to the scheduler."""

import signal
import time
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.commands.running import start
from tests.integration.enforce.slurmbin import SlurmBin
from tests.unit.enforce.kubes import Kubernetes, cluster_queue, queue, quota, serving

BUDGET = """\
clusters: {ai2test: {gpus: 16, model: h100}, kubernetes: {gpus: 16, model: h100}}
accounts:
  ai2test/proj-a1: {share: 1}
  ai2test/proj-b1: {share: 3}
  kubernetes/a: {share: 1}
"""


@pytest.fixture
def slurm(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmBin:
    """Slurm's commands, and a ledger that has had a cycle of each cluster."""
    (tmp_path / "budget.yaml").write_text(BUDGET)
    ledger.done("budget", "apply", tmp_path / "budget.yaml", "--from", "2026-01-01", "--yes")
    for cluster in ("ai2test", "kubernetes"):
        ledger.done("cycle", "--cluster", cluster)
    (tmp_path / "enforce.yaml").write_text('slurm: {managed: ["proj-*"]}\nkai: {managed: [a]}\n')
    return SlurmBin(tmp_path, monkeypatch)


def test_slurm_is_shown_then_set_then_as_it_has_to_be_and_drift_exits_3(
    ledger: Ledger, slurm: SlurmBin, tmp_path: Path
) -> None:
    command = ("enforce", "slurm", "--config", tmp_path / "enforce.yaml")
    shown = ledger(*command, "--dry-run")
    assert shown.status == 0, shown.err
    assert "account proj-b1: fairshare from 1 to 12000, ai2test/proj-b1 asks for nothing" in shown.out
    assert (
        "    sacctmgr -i modify account where name=proj-b1 cluster=ai2test set fairshare=12000" in shown.out
    )
    assert "2 changes would be made" in shown.out
    assert "note: proj-a2: no account of the cycle is known by that name" in shown.out
    assert slurm.commands() == []

    done = ledger.done(*command)
    assert [(c["to"], c["done"]) for c in done["changes"]] == [("4000", True), ("12000", True)]
    assert len(slurm.commands()) == 2
    slurm.change("assoc.psv", "ai2test|proj-a1||30|", "ai2test|proj-a1||4000|")
    slurm.change("assoc.psv", "ai2test|proj-b1||1|", "ai2test|proj-b1||12000|")
    again = ledger(*command)
    assert (again.status, "nothing to change" in again.out) == (0, True)

    slurm.change("assoc.psv", "ai2test|proj-b1||12000|", "ai2test|proj-b1||7|")
    drift = ledger(*command, "--dry-run")
    assert drift.status == 3
    assert "drift: account proj-b1: fairshare was set to 12000 and is 7: changed by hand" in drift.out
    assert ledger(*command).status == 0
    lines = [path.read_text() for path in (ledger.home / "enforce").glob("slurm-default.*.ndjson")]
    assert sum(text.count("\n") for text in lines) == 3


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"proj-a1": "no right", "proj-b1": "no right"}, 2),
        ({"proj-a1": "Connection refused", "proj-b1": "Connection refused"}, 75),
        ({"proj-a1": "no right", "proj-b1": "Connection refused"}, 75),
    ],
    ids=["for good", "nobody answers", "both"],
)
def test_a_change_that_fails_exits_75_only_where_trying_again_may_help(
    ledger: Ledger, slurm: SlurmBin, tmp_path: Path, told: dict[str, str], status: int
) -> None:
    at = slurm.answers
    fails = "".join(f'*"name={name} "*) echo {said} >&2; exit 1;; ' for name, said in told.items())
    slurm.bin.put("sacctmgr", f'case "$*" in *"show assoc"*) cat {at}/assoc.psv;; {fails}esac')
    ran = ledger("enforce", "slurm", "--config", tmp_path / "enforce.yaml")
    assert ran.status == status
    for said in told.values():
        assert f"    not done: sacctmgr failed with status 1: {said}" in ran.out
    assert "0 of 2 changes made" in ran.out


def test_what_is_wrong_with_the_question_is_said(ledger: Ledger, slurm: SlurmBin, tmp_path: Path) -> None:
    file = tmp_path / "enforce.yaml"
    assert ledger("enforce", "slurm", "--config", tmp_path / "nothing").status == 4
    both = ledger("enforce", "slurm", "--config", file, "--dry-run", "--every", 9)
    assert (both.status, "do not go together" in both.err) == (2, True)
    file.write_text("slurm: {cluster: nowhere}\n")
    assert ledger("enforce", "slurm", "--config", file).status == 4
    file.write_text("slurm: {wrong: 1}\n")
    assert ledger("enforce", "slurm", "--config", file).status == 2


def test_it_goes_on_until_it_is_interrupted(ledger: Ledger, slurm: SlurmBin, tmp_path: Path) -> None:
    process = start(
        "enforce", "slurm", "--config", tmp_path / "enforce.yaml", "--every", 5, settings=ledger.settings
    )
    try:
        deadline = time.monotonic() + 60
        while len(slurm.commands()) < 4 and time.monotonic() < deadline:  # two runs of two changes
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert out.count("2 of 2 changes made") >= 2


def test_who_goes_on_waits_for_the_first_cycle(ledger: Ledger, tmp_path: Path, slurm: SlurmBin) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("clusters: {fresh: {hosts: [{name: h1, gpus: 8, model: h100}]}}\n")
    ledger.done("inventory", "apply", hosts, "--from", "2026-01-01")
    file = tmp_path / "fresh.yaml"
    file.write_text("slurm: {cluster: fresh}\n")
    assert ledger("enforce", "slurm", "--config", file).status == 4
    process = start("enforce", "slurm", "--config", file, "--every", 5, settings=ledger.settings)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "cluster 'fresh' had no cycle yet: there is nothing to enforce; the next run is in 5 s" in said
    assert slurm.commands() == []


def test_kueue_and_kai_are_set_through_the_api(ledger: Ledger, slurm: SlurmBin, tmp_path: Path) -> None:
    kubernetes = Kubernetes(cluster_queue("a", "kubernetes/a", quota("1")), queue("a", None))
    file = tmp_path / "enforce.yaml"
    with serving(kubernetes, tmp_path) as config:
        options = ("--config", file, "--kubeconfig", config)
        assert [c["to"] for c in ledger.done("enforce", "kueue", *options)["changes"]] == ["16", "0"]
        assert ledger.done("enforce", "kueue", *options)["changes"] == []
        assert [c["field"] for c in ledger.done("enforce", "kai", *options)["changes"]] == ["gpu"]
    assert kubernetes["Queue", "a"]["spec"]["resources"]["gpu"] == {
        "limit": -1, "overQuotaWeight": 16, "quota": 0,
    }  # fmt: skip
    assert ledger("enforce", "kai", "--config", file, "--kubeconfig", tmp_path / "none").status == 2
