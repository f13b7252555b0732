"""Documents of nvidia-smi -q -x, of eight years of drivers."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

OPTIONS = ImportOptions(timezone="UTC", host="n1")
DOCUMENT = b"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
 <timestamp>Tue Jul 14 08:12:38 2026</timestamp>
 <attached_gpus>1</attached_gpus>
 <gpu id="00000000:18:00.0">
  <uuid>GPU-1</uuid>
  <utilization><gpu_util>97 %</gpu_util></utilization>
  <fb_memory_usage><used>575 MiB</used></fb_memory_usage>
  <remapped_rows><remapped_row_pending>No</remapped_row_pending><remapped_row_failure>No</remapped_row_failure></remapped_rows>
  <gpu_power_readings><power_draw>69.85 W</power_draw></gpu_power_readings>
 </gpu>
</nvidia_smi_log>
"""


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / "tests/fixtures/sources/telemetry"


def gpus(path: Path, options: ImportOptions = OPTIONS) -> list[Any]:
    (item,) = source("nvidia-smi-xml").read(path, options)
    assert isinstance(item, Translated)
    return list(data(item)[0].gpus)


def test_a_document_is_one_message(tmp_path: Path) -> None:
    (event,) = events(one("nvidia-smi-xml", tmp_path / "d", DOCUMENT, OPTIONS))
    assert (event.id, event.source) == ("n1/1784016758", "nvidia-smi/nvidia-smi")
    (gpu,) = event.data.gpus
    assert (gpu.uuid, gpu.gpu_util, gpu.memory_mib, gpu.power_w) == ("GPU-1", 97, 575, Decimal("69.85"))


@pytest.mark.parametrize("told", ["2", "²", "9" * 5000, "٢", "01"])
def test_another_number_of_devices_than_is_listed_is_told(tmp_path: Path, told: str) -> None:
    said = DOCUMENT.replace(b"<attached_gpus>1<", f"<attached_gpus>{told}<".encode())
    item = one("nvidia-smi-xml", tmp_path / "d", said, OPTIONS)
    assert codes(item) == ([] if told in {"01", "²"} else ["gpu-count-differs"])


def test_an_old_device_measures_nothing_and_is_not_idle(folder: Path) -> None:
    (gpu,) = gpus(folder / "microsoft-pai/nvidia_smi_outdated_gpu.xml")
    assert (gpu.uuid, gpu.gpu_util) == ("GPU-09cb2925-9d01-5ca4-810b-6cdebe86b71a", None)


def test_devices_are_known_by_uuid_in_whatever_order_they_stand(folder: Path) -> None:
    found = gpus(folder / "microsoft-pai/nvidia_smi_out_of_order.xml")
    assert len({gpu.uuid for gpu in found}) == len(found) == 4


def test_a_device_in_mig_mode_has_no_utilisation_and_its_slices_have_names(folder: Path) -> None:
    whole, *slices = gpus(folder / "telegraf-nvidia-smi/a100-sxm4-v12.xml")
    assert whole.gpu_util is None
    assert [part.uuid.removeprefix(whole.uuid) for part in slices] == ["/3/0", "/4/0", "/5/0", "/6/0"]
    assert [part.memory_mib for part in slices] == [12, 12, 12, 12]


def test_power_is_found_wherever_a_driver_writes_it(folder: Path) -> None:
    power = {
        path.stem: gpus(path)[0].power_w
        for path in (folder / "telegraf-nvidia-smi").glob("*.xml")
        if "1070" not in path.stem
    }
    assert power["rtx-3080-v13"] == Decimal("142.33")
    assert None not in {power[stem] for stem in ("a10g", "tesla-t4", "rtx-3080-v12", "a100-sxm4-v12")}


def test_a_document_without_a_time_needs_one_from_the_person(folder: Path) -> None:
    path = folder / "telegraf-nvidia-smi/gtx-1070-ti.xml"
    (fault,) = source("nvidia-smi-xml").read(path, OPTIONS)
    assert only([fault]).code == "missing-value"
    (gpu,) = gpus(path, ImportOptions(host="n1", at_s=1_700_000_000))
    assert gpu.gpu_util is not None


def test_documents_of_a_loop_follow_each_other(tmp_path: Path) -> None:
    later = DOCUMENT.replace(b"08:12:38", b"08:13:08")
    first, second = read("nvidia-smi-xml", tmp_path / "d", DOCUMENT + later, OPTIONS)
    assert isinstance(first, Translated)
    assert isinstance(second, Translated)
    assert (data(second)[0].interval_s, second.line) == (30, 14)


def test_a_remapped_row_that_waits_is_an_observation(tmp_path: Path) -> None:
    pending = DOCUMENT.replace(b"pending>No", b"pending>Yes")
    _, observed = data(one("nvidia-smi-xml", tmp_path / "d", pending, OPTIONS))
    assert (observed.kind, observed.pci) == ("remap_pending", "00000000:18:00.0")


def test_a_failure_of_the_device_is_reported(tmp_path: Path) -> None:
    item = one("nvidia-smi-xml", tmp_path / "d", DOCUMENT.replace(b"97 %", b"ERR!"), OPTIONS)
    assert (data(item)[0].gpus[0].gpu_util, codes(item)) == (None, ["device-error"])


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b"</gpu>", b"", "bad-xml"),
        (b"<!DOCTYPE nvidia_smi_log", b'<!DOCTYPE nvidia_smi_log [<!ENTITY a "b">]>\n<!--', "bad-xml"),
        (b"<uuid>GPU-1</uuid>", b"", "missing-value"),
        (b"Tue Jul 14", b"Tue 14 Jul", "not-a-time"),
        (b"2026</timestamp>", b"9026</timestamp>", "time-out-of-range"),
    ],
)
def test_a_broken_document_is_one_fault_and_the_next_goes_on(
    tmp_path: Path, old: bytes, new: bytes, code: str
) -> None:
    broken = DOCUMENT.replace(old, new)
    assert broken != DOCUMENT
    fault, good = read("nvidia-smi-xml", tmp_path / "d", broken + DOCUMENT, OPTIONS)
    assert only([fault]).code == code
    assert isinstance(good, Translated)


def test_a_document_that_was_mended_is_read_again(tmp_path: Path) -> None:
    fault = only(read("nvidia-smi-xml", tmp_path / "d", DOCUMENT.replace(b"</gpu>", b""), OPTIONS))
    again = source("nvidia-smi-xml").retry(DOCUMENT, fault.context)
    assert data(again)[0].host == "n1"


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (DOCUMENT, ImportOptions(host="n1"), "local times"),
        (DOCUMENT, ImportOptions(host="n1", at_s=5), "no zone"),
        (DOCUMENT, ImportOptions(timezone="UTC"), "nothing names the host"),
        (b"<html></html>", OPTIONS, "no document"),
        (b"\n\n", OPTIONS, "no document"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused(
    tmp_path: Path, content: bytes, options: ImportOptions, told: str
) -> None:
    with pytest.raises(Refused, match=told):
        read("nvidia-smi-xml", tmp_path / "d", content, options)
