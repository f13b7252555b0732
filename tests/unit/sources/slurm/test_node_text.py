from pathlib import Path

import pytest
from tests.unit.sources.slurm.live import codes, events, fault, one, read, read_text

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Translated

BLOCK = """NodeName=n1 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=128 CPUTot=128 CPULoad=0.22
   Gres=gpu:h100:8
   OS=Linux 6.1 #1 SMP PREEMPT_DYNAMIC
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0
   BootTime=2026-11-29T13:29:37 SlurmdStartTime=2026-11-29T14:54:47
   LastBusyTime=2026-11-29T14:55:51
   CfgTRES=cpu=128,mem=1000000M,billing=128,gres/gpu=8,gres/gpu:h100=8
   AllocTRES=
   Reason=see State=IDLE [ticket 7] Gres=gpu:0 [ada@2026-11-29T14:55:50]
"""
HEADER = "HOSTNAMES|GRES |STATE|REASON|TIMESTAMP|CLUSTER\n"
DRAINED = "n1 |gpu:h100:8(S:0-1) |drain |replace |2026-11-29T14:55:50 |alpha\n"


def test_a_block_is_read_up_to_its_reason(tmp_path: Path) -> None:
    registered, drained = events(read_text("slurm-nodes", tmp_path, BLOCK))
    assert (registered.at_s, registered.data.gpus, registered.data.gpu_model) == (1795958977, 8, "h100")
    assert (drained.at_s, drained.data.state) == (1795964150, "draining")
    assert drained.data.reason == "drain/see-state-idle-ticket-7-gres-gpu-0"
    assert "ada" not in str(drained.data)


def test_blocks_on_one_line_are_the_same(tmp_path: Path) -> None:
    one_line = " ".join(line.strip() for line in BLOCK.splitlines()) + "\n"
    assert [event.id for event in events(read_text("slurm-nodes", tmp_path, one_line * 2))] == 2 * [
        event.id for event in events(read_text("slurm-nodes", tmp_path, BLOCK))
    ]


def test_times_are_local_and_doubtful_ones_are_told(tmp_path: Path) -> None:
    winter = BLOCK.replace("2026-11-29T14:55:50", "2026-11-01T01:30:00")
    items = read_text("slurm-nodes", tmp_path, winter, timezone="America/Los_Angeles")
    assert codes(items) == ["ambiguous-time"]
    assert events(items)[0].at_s == 1795958977 + 8 * 3600


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("State=IDLE+DRAIN", "State=ASLEEP", "unknown-state"),
        ("State=IDLE+DRAIN", "", "missing-value"),
        ("BootTime=2026-11-29T13:29:37", "BootTime=monday", "not-a-time"),
        ("OS=Linux", "Comment=State=DOWN State=DOWN OS=Linux", "key-twice"),
        ("OS=Linux", "OS=Lin\0ux", "nul-byte"),
    ],
)
def test_a_block_that_cannot_be_read_is_a_fault(tmp_path: Path, before: str, after: str, code: str) -> None:
    items = read_text("slurm-nodes", tmp_path, BLOCK.replace(before, after) + "\n" + BLOCK)
    assert codes(items) == [code]
    assert isinstance(items[1], Translated)


def test_a_node_that_never_booted_has_no_boot(tmp_path: Path) -> None:
    block = BLOCK.replace("BootTime=2026-11-29T13:29:37", "BootTime=None").replace(
        "LastBusyTime=2026-11-29T14:55:51", "LastBusyTime=Unknown"
    )
    assert [event.name for event in events(read_text("slurm-nodes", tmp_path, block))] == [
        "host.state_changed"
    ]


def test_a_row_is_read_by_its_columns_whatever_their_padding(tmp_path: Path) -> None:
    (event,) = events(read_text("slurm-nodes", tmp_path, HEADER + DRAINED))
    assert (event.data.cluster, event.data.host, event.data.gpus) == ("alpha", "n1", 8)
    assert (event.data.state, event.data.reason, event.at_s) == ("draining", "drain/replace", 1795964150)


def test_a_host_that_stands_in_two_partitions_is_one_fact(tmp_path: Path) -> None:
    first, second = read_text("slurm-nodes", tmp_path, HEADER + DRAINED * 2)
    assert [event for event, _ in one([first]).events] == [event for event, _ in one([second]).events]


def test_a_row_may_stand_for_many_hosts(tmp_path: Path) -> None:
    text = "NODELIST|GRES|STATE\nn[08-10],m1|gpu:8|alloc\n"
    found = events(read_text("slurm-nodes", tmp_path, text, at_s=1795964150, cluster="beta"))
    assert [event.data.host for event in found] == ["n08", "n09", "n10", "m1"]
    assert {(event.data.cluster, event.at_s) for event in found} == {("beta", 1795964150)}


def test_a_row_of_another_width_is_a_fault_that_a_retry_reads_alike(tmp_path: Path) -> None:
    found = fault(read_text("slurm-nodes", tmp_path, HEADER + "n1|gpu:8|drain|a|b|c|d\n" + DRAINED))
    assert (found.code, found.line) == ("wrong-columns", 2)
    assert found.context["columns"] == ["HOSTNAMES", "GRES", "STATE", "REASON", "TIMESTAMP", "CLUSTER"]


def test_rows_without_a_header_are_known_by_their_cpus(tmp_path: Path) -> None:
    found = events(read("slurm-nodes", "gcm-sinfo-bare.txt.gz", at_s=1795964150))
    assert len(found) == 10
    assert {(event.data.host, event.data.state) for event in found if event.data.state != "healthy"} == {
        ("node2654", "maintenance")
    }
    with pytest.raises(Refused, match="columns do not fit"):
        read_text("slurm-nodes", tmp_path, "n1|gpu:8|gpu:0|256|lots|idle|learn\n")


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("HOSTNAMES|STATE", "GRES"),
        ("GRES|STATE", "NODELIST or HOSTNAMES"),
        ("HOSTNAMES|GRES", "STATE"),
    ],
)
def test_a_header_that_tells_too_little_is_refused(tmp_path: Path, header: str, missing: str) -> None:
    with pytest.raises(Refused, match=f"missing .*{missing}"):
        read_text("slurm-nodes", tmp_path, header + "\n")


def test_a_listing_of_settings_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="reads like configuration: its nodes have no live state"):
        read_text("slurm-nodes", tmp_path, "NodeName=n[1-4] Gres=gpu:h100:8 State=UNKNOWN\n")
