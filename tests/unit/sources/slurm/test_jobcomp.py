"""Documents of job completion: naive UTC, starts and ends in any order, base states alone."""

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.slurm.told import (
    HOUR,
    T,
    Told,
    accounting,
    codes,
    completion,
    document,
    gpu_seconds,
    of,
    read,
    text_time,
    understood,
)

from gpuledger.events.envelope import Event
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

JOBCOMP = "slurm-jobcomp"
W = f"4711-{T}"
END = completion(Told())
START = completion(Told(state="RUNNING", end=None))


def lines(*documents: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in documents)


def events(tmp_path: Path, *documents: dict[str, Any]) -> list[Event]:
    return understood(read(JOBCOMP, tmp_path, lines(*documents)))


def test_an_end_tells_the_whole_run(tmp_path: Path) -> None:
    assert gpu_seconds(events(tmp_path, END)) == {W: 8 * 17_100}


def test_a_start_leaves_the_run_open(tmp_path: Path) -> None:
    assert [e.name for e in events(tmp_path, START)] == ["workload.submitted", "workload.started"]


@pytest.mark.parametrize("order", list(permutations((START, END, END))))
def test_starts_and_ends_in_any_order_are_one_run(tmp_path: Path, order: Sequence[dict[str, Any]]) -> None:
    assert gpu_seconds(events(tmp_path, *order)) == {W: 8 * 17_100}


def test_times_are_utc_whatever_the_zone_of_the_import(tmp_path: Path) -> None:
    berlin = ImportOptions(timezone="Europe/Berlin")
    assert understood(read(JOBCOMP, tmp_path, lines(END), berlin)) == events(tmp_path, END)


def test_a_requeued_run_reads_as_pending_with_an_end(tmp_path: Path) -> None:
    requeued = events(tmp_path, END | {"state": "PENDING"})
    assert [e.name for e in requeued][1:] == ["workload.started", "workload.requeued"]
    assert gpu_seconds(requeued) == {W: 8 * 17_100}


@pytest.mark.parametrize("start", ["Unknown", "None", text_time(T + 40_000)])
def test_what_was_cancelled_while_it_waited_is_charged_0(tmp_path: Path, start: str) -> None:
    cancelled = END | {"state": "CANCELLED", "@start": start, "tres_alloc": None, "elapsed": 0}
    found = events(tmp_path, cancelled)
    assert [e.name for e in found] == ["workload.submitted", "workload.ended"]
    assert gpu_seconds(found) == {}


def test_the_last_size_of_a_resized_job_is_the_run_that_accounting_tells(tmp_path: Path) -> None:
    shrunk = T + 1800 + 600
    last = END | {"@start": text_time(shrunk), "tres_alloc": "gres/gpu=2"}
    told = accounting(Told(submit=shrunk, start=T + 1800, tres="gres/gpu=2"))
    book = understood(read("slurm-sacct-json", tmp_path, document(told)))
    found = events(tmp_path, last)
    assert of(found, "started")[0].data.run == of(book, "started")[0].data.run == str(shrunk)
    assert sum(gpu_seconds(found).values()) == sum(gpu_seconds(book).values()) == 2 * (17_100 - 600)
    assert found[0].data.workload == W


def test_a_size_whose_beginning_is_not_told_is_an_alarm(tmp_path: Path) -> None:
    at = text_time(T + 2400)
    items = read(JOBCOMP, tmp_path, lines(END | {"state": "RESIZING", "@start": at, "@end": at}))
    assert codes(items) == ["size-not-told"]
    assert [e.name for e in understood(items)] == ["workload.submitted"]


def test_a_size_with_a_span_is_charged(tmp_path: Path) -> None:
    size = END | {"state": "RESIZING", "@end": text_time(T + 2400), "elapsed": 99_999}
    assert gpu_seconds(events(tmp_path, size)) == {W: 8 * 600}


def test_array_tasks_and_components_have_the_numbers_that_people_see(tmp_path: Path) -> None:
    found = events(
        tmp_path,
        completion(Told(job=14, array=2, task=0)),
        completion(Told(job=22, leader=21, offset=1)),
        END | {"jobid": 32, "pack_job_id": 31, "pack_job_offset": 1},
    )
    assert [e.data.workload for e in of(found, "submitted")] == [f"2_0-{T}", f"21+1-{T}", f"31+1-{T}"]


def test_a_limit_is_in_seconds(tmp_path: Path) -> None:
    assert events(tmp_path, END)[0].data.time_limit_s == 8 * HOUR
    assert events(tmp_path, END | {"time_limit": 4294967295})[0].data.time_limit_s is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"jobid": None}, "bad-shape"),
        ({"@submit": None}, "missing-value"),
        ({"@submit": "22:00"}, "not-a-time"),
        ({"state": "NAPPING"}, "unknown-state"),
        ({"tres_alloc": "gres/gpu=many"}, "not-a-number"),
    ],
)
def test_what_cannot_be_read_is_a_dead_letter_with_a_reason(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    assert codes(read(JOBCOMP, tmp_path, lines(END | change, END))) == [code]


def test_blank_lines_hold_no_record_and_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    items = read(JOBCOMP, tmp_path, b"\xef\xbb\xbf" + lines(END) + b"\n  \n" + lines(START))
    assert [item.line for item in items] == [1, 4]


@pytest.mark.parametrize("content", [b"", b"hello\n", b"[1]\n", b"\n\n"])
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused):
        read(JOBCOMP, tmp_path, content)


def test_the_size_is_that_of_the_file(tmp_path: Path) -> None:
    read(JOBCOMP, tmp_path, lines(END))
    assert source(JOBCOMP).size(tmp_path / "records") == len(lines(END))
