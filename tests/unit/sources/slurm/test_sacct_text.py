"""``sacct --parsable2``: any columns, both separators, broken lines, bytes that are no text; and the captures."""

from pathlib import Path

import pytest
from tests.unit.sources.slurm.told import (
    ALPHA,
    EIGHT,
    T,
    Told,
    accounting,
    by_job,
    codes,
    document,
    expected,
    gpu_seconds,
    histories,
    listing,
    read,
    read_fixture,
    row,
    understood,
)

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.slurm.sacct_text import REQUIRED

TEXT = "slurm-sacct-text"
RUN = Told()
CHARGED = {f"4711-{T}": 8 * 17_100}


@pytest.mark.parametrize("file", ["sacct-allocations.psv.gz", "sacct-all-fields.psv.gz"])
def test_every_job_of_a_real_slurm_is_charged_to_the_second(file: str) -> None:
    items = read_fixture(TEXT, f"captures/{file}", ImportOptions(cluster="ai2test"))
    seconds = by_job(gpu_seconds(understood(items)))
    assert len(items) == 32
    assert {job: seconds.get(job, 0) for job in expected()} == expected()
    assert codes(items) == ["suspended"]


def test_text_and_json_of_one_slurm_tell_the_same_facts_under_the_same_ids() -> None:
    text = understood(read_fixture(TEXT, "captures/sacct-all-fields.psv.gz"))
    document_ = understood(read_fixture("slurm-sacct-json", "captures/sacct.json.gz"))
    assert histories(text) == histories(document_)
    by_id = {e.id: e.data for e in text}
    # The JSON of 22.05 says that job 8 exited with 0, its text that it exited with 3.
    assert [e.id for e in document_ if e.id not in by_id and "/ended/" not in e.id] == []
    assert len([e for e in document_ if by_id.get(e.id) == e.data]) == len(document_) - 1


@pytest.mark.parametrize("delimiter", ["|", "|#"])
def test_the_header_tells_the_separator(tmp_path: Path, delimiter: str) -> None:
    items = read(TEXT, tmp_path, listing(row(RUN), delimiter=delimiter))
    assert gpu_seconds(understood(items)) == CHARGED


def test_columns_may_be_any_in_any_order(tmp_path: Path) -> None:
    cells = row(RUN)
    few = {column: cells[column] for column in reversed(REQUIRED)} | {"Whatever": "x"}
    events = understood(read(TEXT, tmp_path, listing(few), ALPHA))
    assert gpu_seconds(events) == CHARGED
    assert (events[0].data.account, events[0].data.user) == ("unmapped/alpha", "-")


@pytest.mark.parametrize("column", REQUIRED)
def test_without_a_column_that_money_depends_on_the_file_is_refused(tmp_path: Path, column: str) -> None:
    cells = {name: value for name, value in row(RUN).items() if name != column}
    with pytest.raises(Refused, match=f"lacks {column}") as refused:
        read(TEXT, tmp_path, listing(cells))
    assert "--duplicates" in refused.value.hint


@pytest.mark.parametrize("content", [b"", b"hello\n", b"a,b,c\n1,2,3\n", b"a|b\n1|2\n", b"{}\n"])
def test_what_has_no_header_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused):
        read(TEXT, tmp_path, content)


def test_a_column_that_stands_there_twice_must_say_the_same(tmp_path: Path) -> None:
    lines = listing(row(RUN)).splitlines()
    end = row(RUN)["End"].encode()
    agreeing = lines[0] + b"|End\n" + lines[1] + b"|" + end + b"\n"
    assert gpu_seconds(understood(read(TEXT, tmp_path, agreeing))) == CHARGED
    assert codes(read(TEXT, tmp_path, agreeing[: -len(end) - 1] + b"2026-11-30T00:00:00\n")) == [
        "column-twice"
    ]


def test_steps_hold_no_record(tmp_path: Path) -> None:
    steps = [row(RUN) | {"JobID": f"4711.{step}"} for step in ("batch", "extern", "0", "interactive")]
    steps += [row(RUN) | {"JobID": "2_7.0"}, row(RUN) | {"JobID": "21+1.0"}]
    items = read(TEXT, tmp_path, listing(row(RUN), *steps))
    assert gpu_seconds(understood(items)) == CHARGED
    assert len(items) == 1


def test_a_line_end_within_a_field_is_put_together_again(tmp_path: Path) -> None:
    broken = row(RUN) | {"JobName": "first\nsecond\n\nthird"}
    items = read(TEXT, tmp_path, listing(broken, row(Told(job=2))))
    assert [(item.line, type(item)) for item in items] == [(2, Translated), (6, Translated)]
    assert len(gpu_seconds(understood(items))) == 2


def test_a_row_that_is_cut_short_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    lines = listing(row(RUN), row(Told(job=2)), row(Told(job=3))).splitlines(keepends=True)
    lines[2] = lines[2][:150] + b"\n"
    items = read(TEXT, tmp_path, b"".join(lines))
    assert codes(items) == ["wrong-columns"]
    assert [item.line for item in items] == [2, 3, 4]
    lines[3] = lines[3][:150]
    assert codes(read(TEXT, tmp_path, b"".join(lines)))[0] == "wrong-columns"


def test_a_separator_within_a_field_is_a_fault_and_never_a_guess(tmp_path: Path) -> None:
    items = read(TEXT, tmp_path, listing(row(RUN) | {"JobName": "a|b"}, row(Told(job=2))))
    assert codes(items) == ["wrong-columns"]
    (fault,) = [item for item in items if isinstance(item, Fault)]
    assert b"a|b" in fault.raw
    items = read(TEXT, tmp_path, listing(row(RUN) | {"JobName": "a|b"}, delimiter="|#"))
    assert gpu_seconds(understood(items)) == CHARGED


def test_bytes_that_are_no_text_are_kept_as_escapes(tmp_path: Path) -> None:
    content = listing(row(RUN)).replace(b"|train|", b"|tr\xe4in|").replace(b"|prog-a|", b"|prog-\xe4|")
    events = understood(read(TEXT, tmp_path, content))
    assert events[0].data.account == "alpha/prog-%5Cxe4"
    assert gpu_seconds(events) == CHARGED


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + listing(row(RUN)).replace(b"\n", b"\r\n")
    assert gpu_seconds(understood(read(TEXT, tmp_path, content))) == CHARGED


def test_a_trailing_separator_of_parsable_output_is_a_column_without_a_name(tmp_path: Path) -> None:
    content = listing(row(RUN)).replace(b"\n", b"|\n")
    assert gpu_seconds(understood(read(TEXT, tmp_path, content))) == CHARGED


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"JobID": "x"}, "bad-job-id"),
        ({"State": ""}, "missing-value"),
        ({"State": "DOZING"}, "unknown-state"),
        ({"Submit": "Unknown"}, "missing-value"),
        ({"Submit": "22:00"}, "not-a-time"),
        ({"Submit": ""}, "missing-value"),
        ({"Start": "yesterday"}, "not-a-time"),
        ({"End": "2105-01-01T00:00:00"}, "time-out-of-range"),
        ({"ElapsedRaw": "-3"}, "out-of-bounds"),
        ({"ElapsedRaw": "99999"}, "clipped-times"),
        ({"AllocTRES": "gres/gpu=x"}, "not-a-number"),
        ({"NodeList": "n[1"}, "bad-hosts"),
        ({"Suspended": "soon"}, "not-a-number"),
    ],
)
def test_what_cannot_be_read_is_a_dead_letter_with_a_reason(
    tmp_path: Path, changes: dict[str, str], code: str
) -> None:
    assert codes(read(TEXT, tmp_path, listing(row(RUN) | changes))) == [code]


def test_times_may_be_seconds(tmp_path: Path) -> None:
    seconds = row(RUN) | {"Submit": str(T), "Start": str(RUN.start), "End": str(RUN.end), "Eligible": str(T)}
    assert understood(read(TEXT, tmp_path, listing(seconds))) == understood(
        read("slurm-sacct-json", tmp_path, document(accounting(RUN)))
    )


def test_what_older_versions_told_of_gpus_is_an_alarm(tmp_path: Path) -> None:
    old = row(Told(tres="cpu=1", asked="cpu=1")) | {"AllocGRES": "gpu:2", "ReqGRES": "PER_NODE:gpu:2"}
    assert codes(read(TEXT, tmp_path, listing(old))) == ["gpus-not-tracked"]
    none = row(Told(tres="cpu=1", asked="cpu=1")) | {"AllocGRES": "gpu:0", "ReqGRES": ""}
    assert codes(read(TEXT, tmp_path, listing(none))) == []


def test_restarts_and_limits_are_read_where_they_are(tmp_path: Path) -> None:
    cells = row(RUN) | {"Restarts": "2", "TimelimitRaw": "", "Timelimit": "1-00:00:00", "AllocTRES": EIGHT}
    events = understood(read(TEXT, tmp_path, listing(cells)))
    assert (events[0].data.time_limit_s, events[1].data.attempt) == (86_400, 3)


def test_a_retry_without_its_columns_is_refused() -> None:
    with pytest.raises(BadRecord) as refused:
        source(TEXT).retry(b"x|y", {"path": "f", "line": 2})
    assert refused.value.code == "no-context"


FILES = {
    # file: records that are facts, faults; the rest are steps
    "sample-sacct-fake-line-break.txt": (2, []),
    "sample-sacct-one-multiline.txt": (2, []),
    "sample-sacct-output-invalid-utf8.txt": (2, []),
    "sample-sacct-output-with-invalid-lines.txt": (0, ["wrong-columns"]),
    "sample-sacct-output.txt": (0, []),
    "sample-sacct-running-output.txt": (0, []),
}


@pytest.mark.parametrize("file", FILES)
def test_published_samples_are_facts_faults_or_steps(file: str) -> None:
    items = read_fixture(TEXT, f"meta-gcm/{file}.gz")
    facts, faults = FILES[file]
    assert sum(isinstance(item, Translated) for item in items) == facts
    assert codes(items) == faults
