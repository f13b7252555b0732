"""What Slurm 22.05.8 printed on a cluster of this repository's own (infra/slurm), read into values."""

from pathlib import Path

import pytest

from gpuledger.enforce import slurm_seen
from gpuledger.enforce.slurm_seen import Association, Job, Node, Quality, Usage
from gpuledger.kernel.errors import Refused

PRINTED = Path(__file__).parents[2] / "fixtures" / "enforce" / "slurm"


def printed(name: str) -> str:
    return (PRINTED / name).read_text()


def test_associations_of_accounts_and_users_with_their_limit_of_gpus() -> None:
    found = slurm_seen.associations(printed("assoc.psv"), "ai2test")

    assert len(found) == 11
    assert Association("proj-a1", "", "30", frozenset({"normal", "unallocated"}), "100") in found
    assert Association("proj-a1", "alice", "1", frozenset({"high", "low", "normal"}), "") in found
    assert slurm_seen.associations(printed("assoc.psv"), "another") == []


def test_qos_with_whom_they_preempt_and_what_their_use_counts() -> None:
    found = slurm_seen.qualities(printed("qos.psv"))
    assert found["unallocated"] == Quality("unallocated", frozenset(), "requeue", "0.000000")
    assert found["high"].preempts == {"low", "normal"}


def test_usage_is_that_of_accounts_in_minutes_of_gpus_of_every_type_once() -> None:
    found = slurm_seen.usages(printed("sshare.psv"))
    assert set(found) == {"root", "institute", "prog-a", "prog-b", "proj-a1", "proj-a2", "proj-b1"}
    assert found["proj-a1"] == Usage(0, 60)
    assert found["institute"] == Usage(0, 100)


def test_jobs_and_arrays_with_priority_and_submit_second() -> None:
    assert slurm_seen.jobs(printed("squeue.psv")) == [
        Job("3_[1-3%1]", "3", "PENDING", 101_000, "proj-b1", 1_796_038_251),
        Job("4", "4", "PENDING", 0, "proj-b1", 1_796_038_251),
        Job("2", "2", "RUNNING", 101_000, "proj-a1", 1_796_038_251),
        Job("3_0", "3", "RUNNING", 101_000, "proj-b1", 1_796_038_251),
    ]
    assert slurm_seen.jobs("1|1|PENDING|5|a|N/A\n")[0].submitted_s is None


def test_nodes_once_each_and_reasons_whole() -> None:
    found = slurm_seen.nodes(printed("sinfo.psv") + "node2|mixed|none\n")
    assert found[0] == Node("node1", "drained", "disk|fan broken")
    assert [node.name for node in found] == ["node1", "node2", "node3", "node4"]


def test_settings_by_name() -> None:
    found = slurm_seen.settings(printed("config.txt") + "a line without a sign\n")
    assert found["ClusterName"] == "ai2test"
    assert "safe" in found["AccountingStorageEnforce"].split(",")


def test_a_listing_of_other_columns_is_refused_with_the_command_to_run() -> None:
    with pytest.raises(Refused, match="which is not 6 columns") as refused:
        slurm_seen.associations("a|b\n", "a")
    assert refused.value.hint.startswith("run it by hand: sacctmgr -nP show assoc")


def test_the_account_itself_is_told_from_its_users() -> None:
    every = slurm_seen.associations(printed("assoc.psv"), "ai2test")
    seen = slurm_seen.Seen("ai2test", limits_are_safe=True, associations=every)
    own = seen.account("proj-a1")
    assert own is not None
    assert own.share == "30"
    assert seen.account("nobody") is None
