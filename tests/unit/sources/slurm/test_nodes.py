"""Every form, on what Slurm itself printed."""

import gzip
import re
from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.slurm.live import FIXTURES, codes, events, fault, read, read_text

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.registry import source


@pytest.mark.parametrize(
    ("file", "records", "hosts"),
    [
        ("lab-scontrol-nodes.txt", 4, ["node1", "node2", "node3", "node4"]),
        ("lab-sinfo.json.gz", 4, ["node1", "node2", "node3", "node4"]),
        ("lab-node3-down.txt", 1, ["node3"]),
        ("gcm-sinfo.txt", 4, ["node0201", "node1537", "node4180"]),
        ("rivos-sinfo.json.gz", 0, []),
        ("telegraf-nodes.json.gz", 0, []),
    ],
)
def test_every_node_of_a_real_picture_is_read(file: str, records: int, hosts: list[str]) -> None:
    items = read("slurm-nodes", file)
    assert len(items) == records
    told = events([item for item in items if codes([item]) == []])
    assert sorted({event.data.host for event in told}) == hosts
    assert {(event.data.gpus, event.data.gpu_model) for event in told} <= {
        (8, "h100"),
        (8, "gen"),
        (2, "gen"),
    }


def test_one_moment_gives_the_same_facts_in_json_and_as_text() -> None:
    """Up to the second of the boot, which Slurm computes anew each time."""
    text, document = (
        events(read("slurm-nodes", file)) for file in ("lab-scontrol-nodes.txt", "lab-sinfo.json.gz")
    )
    assert [(event.id, event.at_s) for event in text] == [(event.id, event.at_s) for event in document]


def test_a_host_that_went_down_is_unhealthy_from_when_it_was_noticed() -> None:
    _, down = events(read("slurm-nodes", "lab-node3-down.txt"))
    assert (down.data.state, down.data.reason, down.at_s) == ("unhealthy", "down/not-responding", 1795964151)


def test_a_monitor_that_asks_sinfo_for_everything_is_read() -> None:
    """Its first row ends with one bar more than the header; the row of another partition says the same."""
    items = read("slurm-nodes", "gcm-sinfo.txt")
    assert codes(items) == ["wrong-columns"]
    found = [(event.data.host, event.data.state, event.data.reason) for event in events(items[1:])]
    assert found == [
        ("node0201", "unhealthy", "not-responding/replace"),
        ("node1537", "healthy", None),
        ("node4180", "healthy", None),
    ]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("lab-slurm.conf", "reads like configuration"),
        ("lab-gres.conf", "reads like configuration"),
        ("deepops-gres.conf", "reads like configuration"),
        ("deepops-slurm.conf.j2", "reads like configuration"),
        ("lab-assoc.cfg", "holds no JSON document"),
        ("lab-sacctmgr-qos.psv", "the columns do not fit"),
        ("lab-squeue-all.psv.gz", "the columns do not fit: missing GRES"),
        ("lab-squeue-running.json.gz", "holds neither nodes nor sinfo"),
        ("lab-scontrol-jobs.txt.gz", "reads like configuration"),
    ],
)
def test_what_is_no_picture_of_nodes_is_refused_with_what_to_import(file: str, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read("slurm-nodes", file)
    assert caught.value.hint


def test_the_moment_of_a_picture_is_that_of_its_newest_word() -> None:
    text = (FIXTURES / "lab-scontrol-nodes.txt").read_text()
    assert {event.at_s for event in events(read("slurm-nodes", "lab-scontrol-nodes.txt"))[1::2]} == {
        1795964557
    }
    assert text.count("LastBusyTime=2026-11-29T15:02:37") == 4


def test_a_moment_that_is_told_is_believed(tmp_path: Path) -> None:
    text = (FIXTURES / "lab-scontrol-nodes.txt").read_text()
    found = events(read_text("slurm-nodes", tmp_path, text, at_s=1795970000))
    assert {event.at_s for event in found if event.name == "host.state_changed"} == {1795970000}


@pytest.mark.parametrize("file", ["lab-scontrol-nodes.txt", "lab-sinfo.json.gz", "gcm-sinfo.txt"])
def test_a_fault_is_mended_by_a_retry_with_what_it_remembers(file: str, tmp_path: Path) -> None:
    """A word that this version does not know becomes one that it does: the same facts as if it always had been."""
    path = FIXTURES / file
    whole = path.read_bytes() if path.suffix == ".txt" else gzip.decompress(path.read_bytes())
    strange = re.sub(rb"(?i)\bidle\b|\balloc\b", b"hibernating", whole, count=1)
    found = next(i for i in read_text("slurm-nodes", tmp_path, strange) if codes([i]) == ["unknown-state"])
    context = msgspec.json.decode(msgspec.json.encode(found.context))
    with pytest.raises(BadRecord, match=f":{found.line}: .*hibernating") as caught:
        source("slurm-nodes").retry(found.raw, context)
    assert caught.value.code == "unknown-state"
    mended = source("slurm-nodes").retry(found.raw.replace(b"hibernating", b"idle"), context)
    same = next(item for item in read_text("slurm-nodes", tmp_path, whole) if item.line == found.line)
    assert mended.events == same.events


def test_the_size_is_that_on_disk() -> None:
    path = FIXTURES / "lab-sinfo.json.gz"
    assert source("slurm-nodes").size(path) == path.stat().st_size


def test_a_cut_file_is_refused_or_told(tmp_path: Path) -> None:
    whole = (FIXTURES / "lab-sinfo.json.gz").read_bytes()
    with pytest.raises(Refused, match="cut short"):
        read_text("slurm-nodes", tmp_path, whole[:-40])
    found = fault(
        read_text("slurm-nodes", tmp_path, gzip.compress(b"NodeName=n1 CPUAlloc=0 Gres=gpu:8\n")[:-9])
    )
    assert found.code == "truncated-gzip"
