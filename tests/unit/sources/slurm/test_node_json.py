import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.slurm.live import codes, events, fault, one, read_text

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault

NODE: dict[str, Any] = {
    "name": "n1",
    "state": ["IDLE"],
    "gres": "gpu:h100:8(S:0-1)",
    "tres": "cpu=128,gres/gpu=8",
    "reason": "",
    "reason_changed_at": {"set": True, "infinite": False, "number": 0},
    "boot_time": {"set": True, "infinite": False, "number": 1769026000},
    "last_busy": {"set": True, "infinite": False, "number": 1769027120},
    "version": "25.11.0",
}
GROUP: dict[str, Any] = {
    "cluster": "onehpc",
    "partition": {"name": "gpu"},
    "nodes": {"total": 2, "nodes": ["n[1-2]"]},
    "node": {"state": ["IDLE", "DRAIN"]},
    "gres": {"total": "gpu:h100:8", "used": "gpu:h100:0"},
    "reason": {
        "description": "Kill task failed",
        "time": {"set": True, "number": 1769027000},
        "user": "root",
    },
}
UPDATE = {"set": True, "infinite": False, "number": 1769557962}


def document(**keys: Any) -> str:  # noqa: ANN401
    return json.dumps(keys, indent=1)


def test_numbers_and_states_of_both_ages_say_the_same(tmp_path: Path) -> None:
    old = NODE | {
        "state": "idle",
        "state_flags": ["DRAIN"],
        "boot_time": 1769026000,
        "last_busy": 1769027120,
        "reason_changed_at": 1769027000,
        "reason": "Kill task failed",
    }
    new = NODE | {
        "state": ["IDLE", "DRAIN"],
        "reason": "Kill task failed",
        "reason_changed_at": {"set": True, "infinite": False, "number": 1769027000},
    }
    found = [
        [
            (event.id, event.at_s)
            for event in events(read_text("slurm-nodes", tmp_path, document(nodes=[node])))
        ]
        for node in (old, new)
    ]
    assert found[0] == found[1]
    assert [at_s for _, at_s in found[0]] == [1769026000, 1769027000]


def test_the_last_update_says_when_the_picture_was_taken(tmp_path: Path) -> None:
    told = read_text("slurm-nodes", tmp_path, document(nodes=[NODE], last_update=UPDATE), at_s=1800000000)
    assert [event.at_s for event in events(told)] == [1769026000, 1769557962]


@pytest.mark.parametrize("update", ["yesterday", {"set": False}, {"set": True, "number": 9_999_999_999}])
def test_an_update_that_is_none_leaves_it_to_the_nodes(tmp_path: Path, update: object) -> None:
    told = read_text("slurm-nodes", tmp_path, document(nodes=[NODE], last_update=update))
    assert [event.at_s for event in events(told)] == [1769026000, 1769027120]


def test_a_group_of_nodes_is_as_many_hosts_in_its_own_cluster(tmp_path: Path) -> None:
    found = events(read_text("slurm-nodes", tmp_path, document(sinfo=[GROUP])))
    assert [(event.data.cluster, event.data.host, event.data.state, event.at_s) for event in found] == [
        ("onehpc", "n1", "draining", 1769027000),
        ("onehpc", "n2", "draining", 1769027000),
    ]


def test_a_group_without_a_time_needs_to_be_told_when_it_was_seen(tmp_path: Path) -> None:
    idle = GROUP | {"node": {"state": ["IDLE"]}, "reason": ""}
    assert fault(read_text("slurm-nodes", tmp_path, document(sinfo=[idle]))).code == "no-time"
    told = read_text("slurm-nodes", tmp_path, document(sinfo=[idle]), at_s=1769027120)
    assert [(event.data.state, event.at_s) for event in events(told)] == [("healthy", 1769027120)] * 2


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": 7}, "bad-shape"),
        ({"name": ""}, "missing-value"),
        ({"state": ["LOST"]}, "unknown-state"),
        ({"state": None}, "missing-value"),
        ({"boot_time": "soon"}, "bad-shape"),
        ({"boot_time": 4_200_000_000}, "time-out-of-range"),
        ({"boot_time": -5}, "time-out-of-range"),
        ({"gres": "gpu:h100:many"}, "not-a-number"),
        ({"gres": "gpu:9g.1gb:1"}, "unknown-fraction"),
    ],
)
def test_a_node_that_cannot_be_read_does_not_take_the_others_with_it(
    tmp_path: Path, change: dict[str, object], code: str
) -> None:
    items = read_text("slurm-nodes", tmp_path, document(nodes=[NODE | change, NODE]))
    assert codes(items) == [code]
    assert [type(item) is Fault for item in items] == [True, False]


def test_numbers_that_stand_for_none_are_none(tmp_path: Path) -> None:
    node = NODE | {"boot_time": 4294967294, "last_busy": {"set": True, "infinite": True, "number": 5}}
    assert fault(read_text("slurm-nodes", tmp_path, document(nodes=[node]))).code == "no-time"


def test_what_stands_before_the_document_is_told(tmp_path: Path) -> None:
    items = read_text("slurm-nodes", tmp_path, "Welcome!\n" + document(nodes=[NODE]))
    assert codes(items) == ["banner"]
    assert one(items).line > 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read as a JSON object"),
        ("[1]", "cannot be read as a JSON object"),
        ('{"jobs": []}', "holds neither nodes nor sinfo"),
        ('{"nodes": 7}', "nodes is not an array"),
        ("hello", "holds no JSON document"),
    ],
)
def test_another_document_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        read_text("slurm-nodes", tmp_path, text)
