"""Every file of telemetry that was collected is read by its source without a crash, and refused by the others."""

from collections import Counter
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

SOURCES = ("dcgm", "nvidia-smi-csv", "nvidia-smi-xml", "xid-log")
OPTIONS = ImportOptions(timezone="UTC", host="n1", at_s=1_700_000_000)

READ: dict[str, tuple[str, int, dict[str, int]]] = {
    "dcgm/dcgm-exporter-readme.prom": ("dcgm", 1, {}),
    "gpud-xid/dmesg-with-xid-119.log": ("xid-log", 5, {}),
    "gpud-xid/kmsg.1.log": ("xid-log", 0, {}),
    "gpud-xid/memory-dmesg.iso.log": ("xid-log", 17, {}),
    "gpud-xid/xid_lines.log": ("xid-log", 10, {"no-log-time": 24, "bad-xid": 4, "unknown-xid": 1}),
    "h100-mig-query.csv": ("nvidia-smi-csv", 2, {}),
    "h100-query.csv": ("nvidia-smi-csv", 2, {}),
    "h100.prom": ("dcgm", 1, {}),
    "microsoft-pai/nvidia_smi_out_of_order.xml": ("nvidia-smi-xml", 1, {}),
    "microsoft-pai/nvidia_smi_outdated_gpu.xml": ("nvidia-smi-xml", 1, {}),
    "microsoft-pai/nvidia_smi_sample.xml": ("nvidia-smi-xml", 1, {}),
    "microsoft-pai/nvidia_smi_sample_ecc_unsupported.xml": ("nvidia-smi-xml", 1, {}),
    "nvidia-gpu-exporter-captures/query-gpu.csv": ("nvidia-smi-csv", 2, {}),
    "telegraf-nvidia-smi/a100-sxm4-v12.xml": ("nvidia-smi-xml", 1, {}),
    "telegraf-nvidia-smi/a10g.xml": ("nvidia-smi-xml", 1, {}),
    "telegraf-nvidia-smi/gtx-1070-ti.xml": ("nvidia-smi-xml", 1, {}),
    "telegraf-nvidia-smi/rtx-3080-v12.xml": ("nvidia-smi-xml", 1, {}),
    "telegraf-nvidia-smi/rtx-3080-v13.xml": ("nvidia-smi-xml", 1, {}),
    "telegraf-nvidia-smi/tesla-t4.xml": ("nvidia-smi-xml", 1, {}),
}
"""File -> its source, how many records it holds, and how many dead letters of each code."""

REFUSED = {
    "README.md": "a list of the files",
    "dcgm/dcp-metrics-included.csv": "a list of metrics",
    "gpud-xid/fabricmanager.log": "a log of the Fabric Manager that quotes no XID",
    "nvidia-gpu-exporter-captures/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt.gz": "a session",
    "nvidia-gpu-exporter-captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt.gz": "a session",
    "nvidia-gpu-exporter-captures/linux-x86_64__nvidia-h100-mig__590.48.01__load.metrics": "another exporter",
}
"""File -> what it is, for it holds no record of any source."""


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "tests/fixtures/sources/telemetry"


def test_every_file_is_spoken_for(folder: Path) -> None:
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", READ)
def test_each_record_is_an_event_or_a_dead_letter(folder: Path, name: str) -> None:
    kind, records, letters = READ[name]
    items = list(source(kind).read(folder / name, OPTIONS))
    assert sum(isinstance(item, Translated) for item in items) == records
    assert Counter(item.code for item in items if isinstance(item, Fault)) == letters


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("name", [*READ, *REFUSED])
def test_what_is_no_record_of_a_source_is_refused_by_it(folder: Path, name: str, kind: str) -> None:
    if name in READ and READ[name][0] == kind:
        return
    with pytest.raises(Refused):
        list(source(kind).read(folder / name, OPTIONS))
