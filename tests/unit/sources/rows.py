"""Rows of each source, and how the tests read them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpuledger.events.envelope import Event, decode
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

PHILLY = b"timestamp,duration,num_gpus,gpu_time,cluster"
GOOD = b"2017-10-09 07:01:55,66.0,1,66.0,11cb48"
COCKPIT_COLUMNS: Mapping[str, str] = {
    "job_id": "679694",
    "cluster": "alex",
    "subcluster": "a40",
    "partition": "a40",
    "user": "user001",
    "project": "proj001",
    "start_time": "1675777167",
    "duration": "83",
    "walltime": "86340",
    "state": "completed",
    "num_acc": "2",
    "nodes": "node001;node002",
    "accelerators": "node001/00000000:E1:00.0;node002/00000000:E1:00.0",
    "acc_utilization_avg": "71.86",
}
POD_COLUMNS: Mapping[str, str] = {
    "name": "openb-pod-0001",
    "num_gpu": "1",
    "gpu_milli": "460",
    "gpu_spec": "",
    "qos": "LS",
    "pod_phase": "Running",
    "creation_time": "427061",
    "deletion_time": "12902960",
    "scheduled_time": "427100",
}
PACIFIC = ImportOptions(timezone="America/Los_Angeles")


def table(columns: Mapping[str, str], **changes: str) -> bytes:
    row = {**columns, **changes}
    return ",".join(row).encode() + b"\n" + ",".join(row.values()).encode() + b"\n"


def read(
    name: str, path: Path, content: bytes, options: ImportOptions | None = None
) -> list[Translated | Fault]:
    path.write_bytes(content)
    return list(source(name).read(path, options or ImportOptions()))


def only(items: list[Translated | Fault]) -> Fault:
    (fault,) = [item for item in items if isinstance(item, Fault)]
    return fault


def philly(path: Path, *rows: bytes, options: ImportOptions | None = None) -> list[Translated]:
    items = read("philly", path, b"\n".join((PHILLY, *rows, b"")), options)
    assert not [item for item in items if isinstance(item, Fault)]
    return [item for item in items if isinstance(item, Translated)]


def one(name: str, path: Path, content: bytes, options: ImportOptions | None = None) -> Translated:
    (item,) = read(name, path, content, options)
    assert isinstance(item, Translated), item
    return item


def events(item: Translated) -> list[Event]:
    for event, value in item.events:
        assert decode(value) == event
    return [event for event, _ in item.events]


def data(item: Translated) -> list[Any]:
    return [event.data for event in events(item)]


def codes(item: Translated) -> list[str]:
    return [anomaly.code for anomaly in item.anomalies]
