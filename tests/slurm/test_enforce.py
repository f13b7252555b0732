"""The enforcer on a real Slurm: it orders, limits, frees of charge, stops no earlier than it may, and sees drift."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from infra.slurm.cluster import Cluster
from infra.slurm.packages import SlurmFailed
from tests.commands.fixtures import Ledger
from tests.slurm.driving import Slurm
from tests.slurm.enforcing import MINIMUM_S, Play, Story
from tests.slurm.fixtures import own_folder

from gpuledger.database.engine import make_engine

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def enforced(
    postgres: "EmbeddedPostgres", template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """The whole story, on a cluster of its own: its jobs must not be in the accounting that others compare."""
    administrator = make_engine(postgres.url("postgres"))
    with administrator.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE gpuledger_enforce TEMPLATE {template_database}")
    administrator.dispose()
    url = postgres.url("gpuledger_enforce")
    with own_folder() as folder:
        cluster = Cluster(folder, nodes=2)
        try:
            cluster.start()
        except SlurmFailed as error:
            pytest.fail(str(error))
        settings = {
            **cluster.environment,
            "GPULEDGER_HOME": str(tmp_path_factory.mktemp("enforcer")),
            "GPULEDGER_DATABASE_URL": url,
        }
        try:
            yield Play(Slurm(cluster), Ledger(settings, url), tmp_path_factory.mktemp("files")).tell()
        finally:
            cluster.stop()


def test_a_run_sets_what_differs_and_the_next_finds_nothing_to_do(enforced: Story) -> None:
    set_to = {f"{change['object']}: {change['field']}": change["to"] for change in enforced.first["changes"]}

    assert set_to["account proj-a1: fairshare"] == "3200"  # nobody asks for anything: 1/5 of 16 GPUs
    assert set_to["account proj-b1: fairshare"] == "9600"
    assert set_to["account proj-a2: GPU-minutes"] == "6"
    assert set_to["qos unallocated: usage factor"] == "0"
    assert set_to["user bob of account proj-b1: may use unallocated"] == "yes"
    assert all(change["done"] for change in enforced.first["changes"])
    assert enforced.again["changes"] == []


def test_a_share_that_was_changed_by_hand_is_named_and_set_back(enforced: Story) -> None:
    assert enforced.drift.status == 3
    (drift,) = enforced.drift.json["drift"]
    assert (drift["key"], drift["found"]) == ("account proj-a1: fairshare", "99")
    (back,) = [c for c in enforced.mended["changes"] if c["field"] == "fairshare"]
    assert (back["object"], back["from"], back["to"], back["done"]) == (
        "account proj-a1",
        "99",
        drift["set_to"],
        True,
    )


def test_a_job_of_the_free_qos_is_charged_in_neither_book(enforced: Story) -> None:
    charged_ms, unallocated_ms = enforced.free_in_ledger
    free_s, charged_s = enforced.used_s

    assert (charged_ms, free_s) == (0, 0)
    assert unallocated_ms >= 4 * 8 * 1000
    assert charged_s > 0


def test_a_job_that_does_not_fit_a_hard_budget_does_not_start(enforced: Story) -> None:
    assert enforced.held == "AssocGrpGRESMinutes"


def test_the_next_jobs_start_in_the_order_of_the_ledger_and_not_in_slurms_own(enforced: Story) -> None:
    assert enforced.by_slurm == enforced.by_ledger[::-1]
    assert sorted(enforced.priorities, key=lambda job: -enforced.priorities[job]) == enforced.by_ledger
    assert enforced.started == enforced.by_ledger


def test_a_run_is_requeued_after_its_minimum_runtime_and_not_before(enforced: Story) -> None:
    assert [c for run in enforced.early for c in run["changes"] if c["to"] == "requeued"] == []
    (requeue,) = [c for c in enforced.late["changes"] if c["to"] == "requeued"]
    assert (requeue["object"], requeue["done"], requeue["destructive"]) == (
        f"job {enforced.victim}",
        True,
        True,
    )
    assert enforced.lasted_s >= MINIMUM_S


def test_a_host_that_is_to_be_repaired_takes_no_work_until_it_is_well(enforced: Story) -> None:
    to_be_repaired, repaired = enforced.drained
    assert to_be_repaired.startswith("drain")
    assert not repaired.startswith("drain")
