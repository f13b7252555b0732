"""What a log in the Standard Workload Format says about itself."""

from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.swf_header import Header, read_header

LOG = Path("log.swf")
GPUS = b"; Note: processors are GPUs"


def header(*comments: bytes, timezone: str | None = None) -> Header:
    return read_header(LOG, comments, ImportOptions(timezone=timezone))


def test_second_0_is_the_unix_start_time() -> None:
    read = header(b"; UnixStartTime: 1000", b"; StartTime: Tue Feb 21 18:44:15 IST 2006", GPUS)
    assert (read.origin_s, read.doubts) == (1000, [])


def test_a_start_time_counts_in_the_zone_that_is_named() -> None:
    start = b";StartTime: Tue Feb 21 18:44:15 IST 2006"
    assert header(start, b";TimeZoneString: Asia/Jerusalem", GPUS).origin_s == 1_140_540_255
    assert header(start, GPUS, timezone="Asia/Jerusalem").origin_s == 1_140_540_255
    assert header(b"; StartTime: Tue Feb 21 18:44:15 2006", GPUS, timezone="UTC").origin_s == 1_140_547_455


def test_without_any_the_seconds_count_from_1970_and_it_is_told() -> None:
    for comments in ((), (b"; UnixStartTime: -1",), (b"; StartTime: Tue Feb 21 18:44:15 IST 2006",)):
        read = header(*comments, GPUS)
        assert (read.origin_s, [code for code, _ in read.doubts]) == (0, ["no-start-time"])


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        (b"; UnixStartTime: soon", "UnixStartTime 'soon' is no number"),
        (b"; StartTime: soon", "StartTime 'soon' cannot be read"),
        (b"; Note: processors are CPU cores", "its header says that 'processors are CPU cores'"),
        (b"; Note: a processor is a core", None),
    ],
)
def test_what_cannot_be_is_refused(comment: bytes, said: str | None) -> None:
    zone = b"; TimeZoneString: Europe/Berlin"
    if said is None:
        assert [code for code, _ in header(comment, zone, b"; UnixStartTime: 0").doubts] == [
            "processors-as-gpus"
        ]
        return
    with pytest.raises(Refused, match=said):
        header(comment, zone, b"; Note: something")


@pytest.mark.parametrize("note", [b"processors are GPUs", b"Processors are gpus.", b"processor is a GPU"])
def test_a_note_says_what_a_processor_is(note: bytes) -> None:
    assert header(b"; UnixStartTime: 0", b"; Note: other", b"; Note: " + note).doubts == []


def test_doubts_are_told_once() -> None:
    read = header(b"; UnixStartTime: 0")
    assert [code for code, _ in read.first_doubts()] == ["processors-as-gpus"]
    assert read.first_doubts() == []


def test_processors_queues_and_partitions_have_their_names() -> None:
    read = header(GPUS, b"; MaxNodes: 4", b"; MaxProcs: 32", b"; Queue: 2 debug runs", b"; Partition: 1 h100")
    assert read.processors == 32
    assert header(b"; MaxNodes: 4").processors == 4
    assert read.labels(queue="2", partition="1") == {"queue": "debug runs", "partition": "h100"}
    assert read.labels(queue="7", partition="-1") == {"queue": "7"}


def test_what_is_remembered_is_the_same_header() -> None:
    read = header(GPUS, b"; UnixStartTime: 5", b"; MaxProcs: 32", b"; Queue: 2 debug")
    assert Header.remembered(read.remember()) == read
    assert Header.remembered({"origin_s": "x", "queues": 3, "processors": None}) == Header()
