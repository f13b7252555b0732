"""Tables of nvidia-smi --query-gpu, with units and without."""

from decimal import Decimal
from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

OPTIONS = ImportOptions(timezone="UTC", host="n1")
HEADER = b"timestamp, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"
ROW = b"2026/07/14 08:12:38.696, GPU-1, 38 %, 575 MiB, 69.85 W\n"


@pytest.mark.parametrize("row", [ROW, b"2026/07/14 08:12:38.696, GPU-1, 38, 575, 69.85\n"])
def test_a_row_is_one_message_of_one_device(tmp_path: Path, row: bytes) -> None:
    (event,) = events(one("nvidia-smi-csv", tmp_path / "c", HEADER + row, OPTIONS))
    assert (event.id, event.source) == ("n1/GPU-1/1784016758", "nvidia-smi/nvidia-smi")
    (gpu,) = event.data.gpus
    assert (gpu.uuid, gpu.gpu_util, gpu.memory_mib, gpu.power_w) == ("GPU-1", 38, 575, Decimal("69.85"))


def test_a_loop_has_intervals_for_each_device(tmp_path: Path) -> None:
    rows = [
        ROW,
        ROW.replace(b"GPU-1", b"GPU-2"),
        ROW.replace(b"12:38", b"13:08"),
        ROW.replace(b"12:38", b"13:08").replace(b"GPU-1", b"GPU-2"),
    ]
    items = read("nvidia-smi-csv", tmp_path / "c", HEADER + b"".join(rows), OPTIONS)
    assert [data(item)[0].interval_s for item in items if isinstance(item, Translated)] == [1, 1, 30, 30]


def test_a_full_query_of_an_h100_under_load(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/h100-query.csv"
    idle, load = (
        item for item in source("nvidia-smi-csv").read(path, OPTIONS) if isinstance(item, Translated)
    )
    assert data(idle)[0].gpus[0].gpu_util == 0
    (gpu,) = data(load)[0].gpus
    assert (data(load)[0].interval_s, gpu.gpu_util, gpu.power_w) == (15, 100, Decimal("625.68"))
    assert codes(load) == []


def test_in_mig_mode_utilisation_is_missing_and_not_0(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/h100-mig-query.csv"
    for item in source("nvidia-smi-csv").read(path, OPTIONS):
        assert isinstance(item, Translated)
        assert data(item)[0].gpus[0].gpu_util is None


def test_a_query_without_times_takes_the_one_that_is_given(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/nvidia-gpu-exporter-captures/query-gpu.csv"
    with pytest.raises(Refused, match="timestamp: is missing"):
        list(source("nvidia-smi-csv").read(path, OPTIONS))
    options = ImportOptions(host="n1", at_s=1_700_000_000)
    first, second = source("nvidia-smi-csv").read(path, options)
    assert isinstance(first, Translated)
    assert isinstance(second, Translated)
    assert [data(item)[0].gpus[0].memory_mib for item in (first, second)] == [575, 1234]


def test_a_column_in_another_unit_is_reported_and_left_out(tmp_path: Path) -> None:
    item = one("nvidia-smi-csv", tmp_path / "c", HEADER.replace(b"[MiB]", b"[GiB]") + ROW, OPTIONS)
    assert (data(item)[0].gpus[0].memory_mib, codes(item)) == (None, ["unknown-value"])


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (ROW.replace(b"GPU-1", b"[N/A]"), "missing-value"),
        (ROW.replace(b"2026/07/14", b"14.07.2026"), "not-a-time"),
        (ROW.replace(b", 69.85 W", b""), "wrong-columns"),
        (ROW + ROW, "same-second"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_fault(tmp_path: Path, row: bytes, code: str) -> None:
    fault = only(read("nvidia-smi-csv", tmp_path / "c", HEADER + row, OPTIONS))
    assert fault.code == code


@pytest.mark.parametrize(
    "lost",
    [
        b"2026/07/14 08:12:48.696, GPU-1, 38 %, 575 MiB\n",
        b"2026/07/14 08:12:48.696, [N/A], 38 %, 575 MiB, 69.85 W\n",
        b"2026/07/14 at eight, GPU-1, 38 %, 575 MiB, 69.85 W\n",
        b"2026/07/14 08:12:48.696, GPU-1, \xff %, 575 MiB, 69.85 W\n",
        b"x" * 2_000_000 + b"\n",
    ],
    ids=["columns", "device", "time", "text", "line"],
)
def test_no_interval_goes_over_a_row_that_is_lost(tmp_path: Path, lost: bytes) -> None:
    content = HEADER + ROW + lost + ROW.replace(b"12:38", b"12:58") + ROW.replace(b"12:38", b"13:08")
    items = read("nvidia-smi-csv", tmp_path / "c", content, OPTIONS)
    assert [data(item)[0].interval_s if isinstance(item, Translated) else None for item in items] == [
        1,
        None,
        1,
        10,
    ]


def test_a_row_that_is_mended_stands_for_the_time_since_the_one_before_it(tmp_path: Path) -> None:
    lost = ROW.replace(b"12:38.696", b"12:5x")
    fault = only(read("nvidia-smi-csv", tmp_path / "c", HEADER + ROW + lost, OPTIONS))
    mended = source("nvidia-smi-csv").retry(fault.raw.replace(b"12:5x", b"12:58"), fault.context)
    assert data(mended)[0].interval_s == 20


def test_rows_that_are_mended_never_stand_for_the_same_time(tmp_path: Path) -> None:
    lost = [ROW.replace(b"12:38.696", b"12:4x"), ROW.replace(b"12:38.696", b"12:5x")]
    items = read("nvidia-smi-csv", tmp_path / "c", HEADER + ROW + b"".join(lost), OPTIONS)
    mended = [
        source("nvidia-smi-csv").retry(item.raw.replace(b"x", b"8"), item.context)
        for item in items
        if isinstance(item, Fault)
    ]
    assert [data(item)[0].interval_s for item in mended] == [10, 1]


def test_a_clock_that_shows_a_second_again_is_a_fault_and_no_repeated_sample(tmp_path: Path) -> None:
    later = ROW.replace(b"12:38", b"13:08")
    items = read("nvidia-smi-csv", tmp_path / "c", HEADER + ROW + later + ROW, OPTIONS)
    assert only(items).code == "same-second"


def test_a_mended_row_is_read_again(tmp_path: Path) -> None:
    broken = HEADER + ROW.replace(b"GPU-1", b"[N/A]")
    fault = only(read("nvidia-smi-csv", tmp_path / "c", broken, OPTIONS))
    again = source("nvidia-smi-csv").retry(fault.raw.replace(b"[N/A]", b"GPU-1"), fault.context)
    assert data(again)[0].gpus[0].uuid == "GPU-1"


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (ROW, OPTIONS, "no header"),
        (b"uuid, uuid\nGPU-1, GPU-1\n", OPTIONS, "no header"),
        (HEADER + ROW, ImportOptions(host="n1"), "local times"),
        (HEADER + ROW, ImportOptions(timezone="UTC"), "nothing names the host"),
        (HEADER + ROW, ImportOptions(host="n1", at_s=5), "no zone"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused(
    tmp_path: Path, content: bytes, options: ImportOptions, told: str
) -> None:
    with pytest.raises(Refused, match=told):
        read("nvidia-smi-csv", tmp_path / "c", content, options)
