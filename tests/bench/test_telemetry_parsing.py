"""How fast each source of telemetry reads, against a bare read of the same bytes by the library underneath."""

import csv
import re
import time
from collections.abc import Callable
from pathlib import Path

import defusedxml.ElementTree
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpuledger.ingest.collector import relax_collector
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

pytestmark = pytest.mark.bench

OPTIONS = ImportOptions(timezone="UTC", host="n1", at_s=1_700_000_000)
RECORDS = {"short": 300, "full": 1400}
ROUNDS = 3

METRICS = """
DEV_SM_CLOCK DEV_MEM_CLOCK DEV_MEMORY_TEMP DEV_GPU_TEMP DEV_POWER_USAGE DEV_TOTAL_ENERGY_CONSUMPTION
DEV_PCIE_REPLAY_COUNTER DEV_GPU_UTIL DEV_MEM_COPY_UTIL DEV_ENC_UTIL DEV_DEC_UTIL DEV_XID_ERRORS DEV_FB_FREE DEV_FB_USED
DEV_FB_RESERVED DEV_UNCORRECTABLE_REMAPPED_ROWS DEV_CORRECTABLE_REMAPPED_ROWS DEV_ROW_REMAP_FAILURE
DEV_NVLINK_BANDWIDTH_TOTAL PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE PROF_DRAM_ACTIVE
"""
"""What the exporter prints by default, each name without its prefix."""


def scrapes(folder: Path, count: int) -> bytes:
    labels = [
        f'gpu="{gpu}",UUID="GPU-{gpu}",pci_bus_id="00000000:{gpu}8:00.0",device="nvidia{gpu}",'
        'modelName="NVIDIA H100 80GB HBM3",hostname="n17",DCGM_FI_DRIVER_VERSION="550.127.08",hpc_job="4711"'
        for gpu in range(8)
    ]
    body = "".join(f"DCGM_FI_{name}{{{one}}} 0\n" for name in METRICS.split() for one in labels)
    stamps = (f"# time 2026-11-30T{n // 60:02}:{n % 60:02}:00Z\n" for n in range(count))
    return "".join(stamp + body for stamp in stamps).encode()


def documents(folder: Path, count: int) -> bytes:
    whole = (folder / "microsoft-pai/nvidia_smi_out_of_order.xml").read_bytes().rstrip() + b"\n"
    return b"".join(whole.replace(b"05:27:00", b"%02d:%02d:00" % divmod(n, 60)) for n in range(count))


def rows(folder: Path, count: int) -> bytes:
    header, idle, _ = (folder / "h100-query.csv").read_bytes().splitlines()
    told = (idle.replace(b"08:12:38", b"%02d:%02d:00" % divmod(n, 60)) for n in range(count))
    return b"\n".join([header, *told, b""])


def lines(folder: Path, count: int) -> bytes:
    line = b"2026-11-30T%02d:%02d:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=7, fallen off the bus.\n"
    return b"".join(line % divmod(n, 60) for n in range(count))


def bare_scrapes(path: Path) -> None:
    for family in text_string_to_metric_families(path.read_text()):
        len(family.samples)


def bare_documents(path: Path) -> None:
    for text in path.read_bytes().split(b"</nvidia_smi_log>\n")[:-1]:
        defusedxml.ElementTree.fromstring(text + b"</nvidia_smi_log>")


def bare_rows(path: Path) -> None:
    with path.open(newline="") as file:
        for row in csv.DictReader(file, skipinitialspace=True):
            len(row)


def bare_lines(path: Path) -> None:
    xid = re.compile(rb"NVRM: Xid \(PCI:([0-9a-f:]+)\): (\d+)")
    for line in path.read_bytes().splitlines():
        xid.search(line)


CASES: dict[str, tuple[Callable[[Path, int], bytes], Callable[[Path], None], float]] = {
    "dcgm": (scrapes, bare_scrapes, 0.3),
    "nvidia-smi-xml": (documents, bare_documents, 0.3),
    # A row is one device here, and so one event of its own, with identity, bytes and digest.
    "nvidia-smi-csv": (rows, bare_rows, 0.25),
    # To find a pattern in a line is a microsecond; an event with its identity, bytes and digest is fifty.
    "xid-log": (lines, bare_lines, 0.01),
}
"""Source -> records, a bare read of them, and the least ratio."""


@pytest.mark.parametrize("name", CASES)
def test_a_source_reads_at_a_good_part_of_a_bare_read(
    tmp_path: Path, repository: Path, test_form: str, name: str
) -> None:
    made, bare, least = CASES[name]
    count = RECORDS[test_form]
    path = tmp_path / "records"
    path.write_bytes(made(repository / "tests/fixtures/sources/telemetry", count))
    relax_collector()
    own, other = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        read = sum(isinstance(item, Translated) for item in source(name).read(path, OPTIONS))
        own.append(time.process_time() - began)
        assert read == count
        began = time.process_time()
        bare(path)
        other.append(time.process_time() - began)
    ratio = min(other) / min(own)
    print(
        f"\n{name}: {count / min(own):,.0f} records/s of processor, bare {count / min(other):,.0f};"
        f" ratio {ratio:.2f}, at least {least} wanted"
    )
    assert ratio >= least
