"""Synthetic listings of events, in the columns of a real one; real listings of settings."""

from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.slurm.live import FIXTURES, Items, codes, events, fault, read, read_text

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.ledger.facts import Known
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.sources.registry import source

SOURCE = "slurm-sacctmgr"
HEADER = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User|TRES\n"
TRES = "cpu=128,gres/gpu=8,gres/gpu:h100=8"
CLUSTER = f"ai2test||2026-11-29T14:53:49|Unknown||Cluster Registered TRES||{TRES}\n"
DOWN = f"ai2test|node3|2026-11-29T14:55:51|2026-11-29T14:56:23|DOWN*|Not responding|root(0)|{TRES}\n"
DRAINED = f"ai2test|node3|2026-11-29T14:56:23|Unknown|DRAIN|replace|root(0)|{TRES}\n"


def states(items: Items) -> list[tuple[str, int, int | None]]:
    known = [
        HostFact(event.data, Known(event.data, event.at_s, event.source, event.digest))
        for event in events(items)
    ]
    return [
        (found.state, found.from_s - 1795964000, found.to_s and found.to_s - 1795964000)
        for found in intervals(known)
    ]


def test_a_trouble_lasts_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    items = read_text(SOURCE, tmp_path, HEADER + CLUSTER + DOWN)
    assert states(items) == [("unhealthy", 151, 183), ("healthy", 183, None)]
    assert {(event.data.cluster, event.data.gpus, event.data.gpu_model) for event in events(items)} == {
        ("ai2test", 8, "h100")
    }


def test_it_is_the_same_fact_as_a_picture_of_that_moment_tells(tmp_path: Path) -> None:
    told = events(read_text(SOURCE, tmp_path, HEADER + DOWN))[0]
    seen = events(read("slurm-nodes", "lab-node3-down.txt", cluster="ai2test"))[1]
    assert (told.id, told.source, told.digest) == (seen.id, seen.source, seen.digest)


def test_where_another_trouble_begins_the_host_is_not_well_in_between(tmp_path: Path) -> None:
    items = read_text(SOURCE, tmp_path, HEADER + DOWN + DRAINED)
    assert states(items) == [("unhealthy", 151, 183), ("draining", 183, None)]


def test_events_of_hosts_without_gpus_and_of_the_cluster_are_passed_over(tmp_path: Path) -> None:
    assert read_text(SOURCE, tmp_path, HEADER + CLUSTER + DOWN.replace(TRES, "cpu=128")) == []


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (DOWN.replace("DOWN*", "ASLEEP"), "unknown-state"),
        (DOWN.replace("2026-11-29T14:55:51", "Unknown"), "no-time"),
        (DOWN.replace("2026-11-29T14:56:23", "soon"), "not-a-time"),
        (DOWN.replace("Not responding", "a|b"), "wrong-columns"),
        (DOWN.replace("ai2test", "a" * 300), "bad-name"),
    ],
)
def test_a_broken_row_is_a_fault_that_a_retry_reads_alike(tmp_path: Path, row: str, code: str) -> None:
    items = read_text(SOURCE, tmp_path, HEADER + row + DOWN.replace("node3", "node4"))
    assert codes(items) == [code]
    found = fault(items)
    with pytest.raises(BadRecord) as caught:
        source(SOURCE).retry(found.raw, msgspec.json.decode(msgspec.json.encode(found.context)))
    assert caught.value.code == code


def test_a_retry_remembers_that_the_host_was_not_well_afterwards(tmp_path: Path) -> None:
    found = fault(read_text(SOURCE, tmp_path, HEADER + DOWN.replace("DOWN*", "ASLEEP") + DRAINED))
    mended = source(SOURCE).retry(
        DOWN.strip().encode(), msgspec.json.decode(msgspec.json.encode(found.context))
    )
    assert [event.data.state for event, _ in mended.events] == ["unhealthy"]


@pytest.mark.parametrize(
    ("file", "told", "todo"),
    [
        ("lab-sacctmgr-event.psv", "missing TRES", "show event format="),
        ("lab-sacctmgr-assoc.psv", "holds 7 accounts and their shares", "ai2test/proj-a1: {share: 450000}"),
        ("lab-sacctmgr-qos.psv", r"holds 3 QOS with limits \(none of GPUs\)", "gpuledger budget apply"),
        ("gcm-sacctmgr-qos.txt", "normal2: GrpTRES gres/gpu=8192", "gpuledger budget apply"),
        ("gcm-sacctmgr-user-info.txt", "holds users and their accounts", "gpuledger mapping apply"),
        ("lab-sacctmgr-tres.psv", "no listing of sacctmgr that holds records", "show event"),
        ("lab-assoc.cfg", "no listing with |", "parsable"),
    ],
)
def test_a_listing_of_settings_is_refused_with_what_it_says(file: str, told: str, todo: str) -> None:
    with pytest.raises(Refused, match=told) as caught:
        read(SOURCE, file)
    assert todo in caught.value.hint


def test_the_size_is_that_on_disk() -> None:
    path = FIXTURES / "lab-sacctmgr-event.psv"
    assert source(SOURCE).size(path) == path.stat().st_size
