"""Slurm's accounting is compared from a file in either form, or as sacct prints it now, a day at a time."""

from pathlib import Path

import pytest
from tests.accounting import CLUSTER, document, job
from tests.collecting import Bin
from tests.integration.collect.conftest import NOW_S

from gpuledger.collect.programs import CommandFailed, Programs
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.reconcile.comparison import Class
from gpuledger.reconcile.reconciling import Reconciliation
from gpuledger.reconcile.slurm import with_sacct
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

DAY_S = 86_400
JOBS = [job(1, NOW_S - 7000, NOW_S - 5000), job(2, NOW_S - DAY_S - 7000, NOW_S - 80_000)]


def live(intake: Intake, folder: Path, from_s: int) -> Reconciliation:
    programs = Programs(folder / "answers", attempts=1)
    return with_sacct(
        intake.engine, programs, ImportOptions(), cluster=CLUSTER, grace_s=600, from_s=from_s, now_s=NOW_S
    )


def test_sacct_is_asked_a_day_at_a_time_and_a_run_on_both_days_counts_once(
    intake: Intake, commands: Bin, tmp_path: Path
) -> None:
    (tmp_path / "all.json").write_text(document(JOBS))
    commands.put("sacct", f'echo "$@" >>{tmp_path}/calls; cat {tmp_path}/all.json')
    run_import(
        source("slurm-sacct-json"), tmp_path / "all.json", ImportOptions(), LedgerSink(intake), lambda _: None
    )

    found = live(intake, tmp_path, NOW_S - 2 * DAY_S)

    assert found.found == []
    assert len(found.amounts) == 2
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_a_cluster_of_which_sacct_knows_nothing_is_compared_all_the_same(
    intake: Intake, commands: Bin, tmp_path: Path
) -> None:
    (tmp_path / "all.json").write_text(document(JOBS[:1]))
    run_import(
        source("slurm-sacct-json"), tmp_path / "all.json", ImportOptions(), LedgerSink(intake), lambda _: None
    )
    commands.put("sacct", f"cat {tmp_path}/none.json")
    (tmp_path / "none.json").write_text(document([]))

    found = live(intake, tmp_path, NOW_S - DAY_S)

    assert [difference.klass for difference in found.found] == [Class.UNKNOWN]


def test_a_sacct_that_fails_ends_the_comparison(intake: Intake, commands: Bin, tmp_path: Path) -> None:
    commands.put("sacct", "exit 1")

    with pytest.raises(CommandFailed):
        live(intake, tmp_path, NOW_S - DAY_S)
