"""XIDs of kernel logs become observations with their time, once each, whichever log tells of them."""

from pathlib import Path

import pytest
from tests.unit.sources.rows import data, events, one, only, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.xid_log import bus_id

OPTIONS = ImportOptions(timezone="UTC", host="n1", cluster="west", at_s=1_700_000_000)
XID = b"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s"
SECOND = 1_740_327_858


@pytest.mark.parametrize(
    ("before", "at_s"),
    [
        (b"[Sun Feb 23 16:24:18 2025] ", SECOND),
        (b"[Feb 23 2025 16:24:18] [ERROR] [tid 7] ", SECOND),
        (b"2025-02-23T16:24:18,283302+00:00 ", SECOND),
        (b"kern  :warn  : 2025-02-23T17:24:18,283302+01:00 ", SECOND),
        (b"2025-02-23T16:24:18+0000 n1 kernel: ", SECOND),
        (b"2025-02-23T16:24:18Z ", SECOND),
        (b"[171167.620236] ", 1_700_171_167),
        (b"kern  :warn  : [    7.620236] ", 1_700_000_007),
        (b"4,3964,206764307,-;", 1_700_000_206),
    ],
)
def test_the_time_of_a_line_is_read_in_every_form(tmp_path: Path, before: bytes, at_s: int) -> None:
    (event,) = events(one("xid-log", tmp_path / "k", before + XID + b"\n", OPTIONS))
    assert event.at_s == at_s
    assert (event.id, event.source) == (f"n1/00000000:9B:00.0/xid119/{at_s}", "kernel/west")
    assert (event.data.kind, event.data.code, event.data.pci) == ("xid", 119, "00000000:9B:00.0")


def test_the_line_names_its_host_where_it_can(tmp_path: Path) -> None:
    line = b"2025-02-23T16:24:18+0000 node-17 kernel: " + XID + b"\n"
    assert data(one("xid-log", tmp_path / "k", line))[0].host == "node-17"


def test_a_device_that_the_log_names_is_known_from_there_on(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/gpud-xid/dmesg-with-xid-119.log"
    items = [item for item in source("xid-log").read(path, OPTIONS) if isinstance(item, Translated)]
    assert [event.at_s - SECOND for item in items for event in events(item)] == [0, 6, 12, 174, 355]
    assert {data(item)[0].gpu_uuid for item in items} == {"GPU-509665ad-b600-ac93-3616-d754b23d636d"}


def test_lines_of_one_second_are_one_observation(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/gpud-xid/memory-dmesg.iso.log"
    items = [item for item in source("xid-log").read(path, OPTIONS) if isinstance(item, Translated)]
    assert len(items) == 17
    assert len({(event.id, event.digest) for item in items for event in events(item)}) == 2


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"[Sun Feb 23 16:24:18 2025] NVRM: Xid (invalid): some error", "bad-xid"),
        (b"[Sun Feb 23 16:24:18 2025] NVRM: Xid", "bad-xid"),
        (b"[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:05:00): 99999, unknown error", "unknown-xid"),
        (b"[Sun Foo 23 16:24:18 2025] " + XID, "not-a-time"),
        (b"Feb 23 16:24:18 n1 kernel: " + XID, "no-year"),
        (b"[...] " + XID, "no-log-time"),
        (XID, "no-log-time"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_fault(tmp_path: Path, line: bytes, code: str) -> None:
    items = read("xid-log", tmp_path / "k", b"[1.5] up\n" + line + b"\n", OPTIONS)
    assert only(items).code == code


@pytest.mark.parametrize(
    ("before", "options", "told"),
    [
        (b"[Sun Feb 23 16:24:18 2025] ", ImportOptions(host="n1"), "--tz"),
        (b"[171167.620236] ", ImportOptions(host="n1"), "--at"),
        (b"2025-02-23T16:24:18Z ", ImportOptions(), "--host"),
    ],
)
def test_what_only_a_person_can_say_refuses_the_file(
    tmp_path: Path, before: bytes, options: ImportOptions, told: str
) -> None:
    with pytest.raises(Refused) as caught:
        read("xid-log", tmp_path / "k", before + XID + b"\n", options)
    assert told in caught.value.hint


def test_a_log_without_errors_holds_no_record_and_no_log_is_refused(tmp_path: Path) -> None:
    assert read("xid-log", tmp_path / "k", b"[    0.000000] Linux version 6.1\n") == []
    with pytest.raises(Refused, match="no line of a kernel log"):
        read("xid-log", tmp_path / "k", b"hello\nworld\n")


def test_a_log_of_the_fabric_manager_is_read_where_it_quotes_the_driver_and_else_refused(
    tmp_path: Path,
) -> None:
    line = b"[Feb 25 2025 13:59:45] [INFO] [tid 1808] multicast group 0 is freed.\n"
    with pytest.raises(Refused, match="no XID that another log quotes"):
        read("xid-log", tmp_path / "k", line, OPTIONS)
    quoted = b"[Feb 23 2025 16:24:18] [ERROR] [tid 7] " + XID + b"\n"
    assert len(events(one("xid-log", tmp_path / "k", line + quoted, OPTIONS))) == 1


def test_a_fault_remembers_the_names_of_devices(tmp_path: Path) -> None:
    named = b"[1.5] NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d\n"
    broken = b"[2.5] NVRM: Xid (PCI:0000:9b:00): ?\n"
    fault = only(read("xid-log", tmp_path / "k", named + broken, OPTIONS))
    again = source("xid-log").retry(fault.raw.replace(b"?", b"79"), fault.context)
    assert data(again)[0].gpu_uuid == "GPU-509665ad-b600-ac93-3616-d754b23d636d"


def test_an_address_is_written_as_the_driver_writes_it() -> None:
    assert bus_id("0000:9b:00") == bus_id("00000000:9B:00") == "00000000:9B:00.0"
