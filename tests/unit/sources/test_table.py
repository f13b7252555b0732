"""Broken tables: one clear message per fault with file and line, and nothing else lost."""

import gzip
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from tests.unit.sources.rows import GOOD, PHILLY, codes, only, read

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.jobs import Job
from gpuledger.sources.lines import Lines
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source
from gpuledger.sources.table import Record, TableSource, Translator, parts


@pytest.mark.parametrize(
    ("row", "code", "told"),
    [
        (b"2017-10-09 07:01:55,66.0,1,66.0", "wrong-columns", "5 columns expected, 4 found"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,a,b", "wrong-columns", "5 columns expected, 6 found"),
        (b"2017-10-09 07:01:55,-66.0,1,-66.0,a", "end-before-start", "duration: '-66.0'"),
        (b"2017-10-09 07:01:55,66.0,-1,66.0,a", "out-of-bounds", "num_gpus: '-1'"),
        (b"2017-10-09 07:01:55,66.0,1.5,99.0,a", "not-a-number", "num_gpus: '1.5'"),
        (b"2017-10-09 07:01:55,66.0,1000001,66.0,a", "out-of-bounds", "num_gpus: 1000001"),
        (b"2017-10-09 07:01:55,nan,1,66.0,a", "not-a-number", "duration: 'nan'"),
        (b"2017-10-09 07:01:55,1e5,1,66.0,a", "not-a-number", "duration: '1e5'"),
        (b"2017-10-09 07:01:55,1_0,1,66.0,a", "not-a-number", "duration: '1_0'"),
        (b"2017-10-09 07:01:55,,1,66.0,a", "missing-value", "duration: is missing"),
        (b"2017-10-09 07:01:55,.,1,66.0,a", "not-a-number", "duration: '.'"),
        (b"2017-13-09 07:01:55,66.0,1,66.0,a", "not-a-time", "timestamp: '2017-13-09"),
        (b"2017-10-09,66.0,1,66.0,a", "not-a-time", "timestamp: '2017-10-09'"),
        (b",66.0,1,66.0,a", "missing-value", "timestamp: is missing"),
        (b"1969-12-31 23:59:59,66.0,1,66.0,a", "time-out-of-range", "1970 to 2100"),
        (b"2101-01-01 00:00:00,66.0,1,66.0,a", "time-out-of-range", "1970 to 2100"),
        (b"2100-12-31 23:59:59,66.0,1,66.0,a", "time-out-of-range", "duration: '66.0'"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,", "missing-value", "cluster: is missing"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,a\tb", "bad-name", "cluster: 'a\\tb'"),
        (b"2017-10-09 07:01:55,66.0,1,66.0," + b"a" * 200, "bad-name", "128 bytes"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,\xe9quipe", "not-utf8", "byte 32 of the line (0xe9)"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,a\0b", "nul-byte", "byte 33"),
        (b'2017-10-09 07:01:55,66.0,1,66.0,"a', "bad-csv", "quoting"),
        (b'2017-10-09 07:01:55,66.0,1,66.0,"a"b', "bad-csv", "quoting"),
        (b"2017-10-09 07:01:55,66.0,1,66.0,a\rb", "bad-csv", "quoting"),
    ],
)
def test_a_broken_row_is_one_fault_and_its_neighbours_are_kept(
    tmp_path: Path, row: bytes, code: str, told: str
) -> None:
    items = read("philly", tmp_path / "p.csv", b"\n".join((PHILLY, GOOD, row, GOOD, b"")))
    fault = only(items)
    assert (fault.line, fault.code, fault.raw) == (3, code, row)
    assert fault.message.startswith(f"{tmp_path}/p.csv:3: ")
    assert told in fault.message
    assert fault.hint
    assert fault.path == f"{tmp_path}/p.csv"
    assert [item.line for item in items if isinstance(item, Translated)] == [2, 4]
    msgspec.json.encode(fault.context)  # the dead letters store it


def test_every_fault_of_a_file_is_told(tmp_path: Path) -> None:
    """The list of the issue, all in one file."""
    long = b"9" * 10_000_000
    rows = [GOOD, b"a,b", GOOD, GOOD.replace(b"66.0,1", b"-66.0,1"), b"\xe9" + GOOD, long, GOOD]
    packed = gzip.compress(b"\n".join([PHILLY, *rows, GOOD[:20], b""]) + GOOD[:11])
    content = packed[:-9]
    items = read("philly", tmp_path / "all.csv.gz", content)
    faults = [item for item in items if isinstance(item, Fault)]
    assert [(fault.line, fault.code) for fault in faults] == [
        (3, "wrong-columns"),
        (5, "end-before-start"),
        (6, "not-utf8"),
        (7, "line-too-long"),
        (9, "wrong-columns"),
        (10, "truncated-gzip"),
    ]
    for fault in faults:
        assert f"all.csv.gz:{fault.line}: " in fault.message
        assert "\n" not in fault.message
        assert len(fault.message) < len(str(tmp_path)) + 200
    assert [item.line for item in items if isinstance(item, Translated)] == [2, 4, 8]


def test_a_header_that_does_not_fit_refuses_the_whole_file(tmp_path: Path) -> None:
    for header, told in (
        (b"timestamp,duration,num_gpus,gpu_time", "missing cluster"),
        (PHILLY + b",priority", "unknown 'priority'"),
        (PHILLY.replace(b"gpu_time", b"gputime"), "missing gpu_time; unknown 'gputime'"),
        (PHILLY + b",cluster", "twice cluster"),
        (b"\xff\xfe" + PHILLY, "not UTF-8"),
        (b"PK\x03\x04\0\0", "NUL"),
        (b"", "missing timestamp"),
    ):
        with pytest.raises(Refused, match=r"p\.csv:1: ") as caught:
            read("philly", tmp_path / "p.csv", header + b"\n" + GOOD + b"\n")
        assert told in caught.value.message
        assert caught.value.hint


def test_a_gzip_cut_before_its_first_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no header"):
        read("philly", tmp_path / "p.csv.gz", gzip.compress(PHILLY + b"\n" + GOOD)[:15])


def test_columns_in_another_order_a_mark_and_returns_are_understood(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfcluster,timestamp,num_gpus,duration,gpu_time\r\n"
    content += b'"11cb48",2017-10-09 07:01:55,1,66.0,66.0\r\n\r\n'
    (item,) = read("philly", tmp_path / "p.csv", content)
    assert isinstance(item, Translated)
    assert item.events[0][0].data.account == "philly/11cb48"  # type: ignore[attr-defined]


def test_a_retry_knows_the_place_and_tells_it(tmp_path: Path) -> None:
    content = b"\n".join((PHILLY, b"a,b", b"a,b", b""))
    _, second = read("philly", tmp_path / "p.csv", content)
    assert isinstance(second, Fault)
    with pytest.raises(BadRecord, match=r"p\.csv:3: 5 columns expected") as caught:
        source("philly").retry(second.raw, second.context)
    assert caught.value.code == "wrong-columns"
    mended = source("philly").retry(GOOD, second.context)
    assert (mended.line, len(mended.events)) == (3, 3)
    assert [anomaly.code for anomaly in mended.anomalies] == ["identical-row"]
    assert mended.events[0][0].id.endswith("-1/submitted"), "the ordinal of the row is remembered"


def test_a_retry_takes_the_options_of_the_import(tmp_path: Path) -> None:
    options = ImportOptions(cluster="west", timezone="America/Los_Angeles")
    fault = only(read("philly", tmp_path / "p.csv", PHILLY + b"\nx\n", options))
    kept = msgspec.json.decode(msgspec.json.encode(fault.context))
    item = source("philly").retry(GOOD, kept)
    (again,) = read("philly", tmp_path / "p.csv", PHILLY + b"\n" + GOOD + b"\n", options)
    assert isinstance(again, Translated)
    assert item.events == again.events


def test_a_retry_of_a_line_that_is_too_long_is_refused(tmp_path: Path) -> None:
    fault = only(read("philly", tmp_path / "p.csv", PHILLY + b"\n" + b"x" * 2_000_000 + b"\n"))
    with pytest.raises(BadRecord, match=r"p\.csv:2"):
        source("philly").retry(fault.raw, fault.context)


def test_a_retry_under_options_that_cannot_be_is_refused(tmp_path: Path) -> None:
    fault = only(read("philly", tmp_path / "p.csv", PHILLY + b"\nx\n"))
    with pytest.raises(BadRecord, match=r"p\.csv:2: --cluster") as caught:
        source("philly").retry(GOOD, {**fault.context, "cluster": "A/B"})
    assert caught.value.code == "bad-options"


def test_a_copied_renamed_unpacked_or_converted_file_changes_nothing(tmp_path: Path) -> None:
    content = b"\n".join((PHILLY, GOOD, GOOD, b""))
    variants = (content, gzip.compress(content), content.replace(b"\n", b"\r\n"), content[:-1])
    found = []
    for number, variant in enumerate(variants):
        items = read("philly", tmp_path / f"copy{number}", variant)
        found.append([value for item in items if isinstance(item, Translated) for _, value in item.events])
    assert all(values == found[0] for values in found)


def test_a_last_line_without_newline_is_told(tmp_path: Path) -> None:
    items = read("philly", tmp_path / "p", PHILLY + b"\n" + GOOD)
    assert [codes(item) for item in items if isinstance(item, Translated)] == [["no-final-newline"]]


class _Narrow(Translator):
    required = ("a", "b")

    def translate(self, record: Record) -> Facts:
        return (), ()


class _Wide(Translator):
    required = ("a", "b", "c")
    optional = ("d",)
    looked_at: ClassVar[list[Path]] = []

    def survey(self, path: Path) -> None:
        self.looked_at.append(path)

    def translate(self, record: Record) -> Facts:
        raise BadRecord("never", code="never", hint="never")


class _Source(TableSource):
    name = "two"
    kinds = (_Wide, _Narrow)


def test_the_kind_of_a_table_is_seen_from_its_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"b,a\n1,2\n")
    assert list(_Source().read(path, ImportOptions())) == []
    path.write_bytes(b"a,b,c,d\n1,2,3,4\n")
    (fault,) = _Source().read(path, ImportOptions())
    assert isinstance(fault, Fault)
    assert fault.code == "never"
    assert _Wide.looked_at == [path], "a file is looked through before its rows are read"
    with pytest.raises(BadRecord, match="never"):
        _Source().retry(fault.raw, fault.context)
    assert _Source().retry(b"1,2", {**fault.context, "header": ["a", "b"]}).events == ()
    path.write_bytes(b"x\n")
    with pytest.raises(Refused, match="missing a, b, c"):
        _Source().read(path, ImportOptions())


def test_one_row_that_is_not_plain_leaves_most_others_by_column() -> None:
    rows = [b"%d,a" % number for number in range(4000)]
    rows[1234] = b'1234,"a"'
    found = list(parts(("id", "user"), Lines(2, b"\n".join(rows), 7)))
    assert b"\n".join(part.text for part, _ in found) == b"\n".join(rows)
    for part, columns in found:
        number = part.number - 2
        assert part.text.split(b"\n") == rows[number : number + part.text.count(b"\n") + 1]
        assert (columns is None) == (b'"' in part.text)
    ((odd, _),) = [pair for pair in found if pair[1] is None]
    assert odd.text.count(b"\n") < 500


def test_a_job_whose_facts_cannot_be_is_the_fault_of_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that were read by column are read by themselves where a fact of theirs is refused."""
    facts = Job.facts

    def refused(self: Job) -> object:
        if self.gpus_milli == 3000:
            raise BadRecord("three", code="three", hint="none")
        return facts(self)

    monkeypatch.setattr(Job, "facts", refused)
    rows = b"\n".join(
        (PHILLY, GOOD, GOOD.replace(b",1,66.0,", b",3,198.0,"), GOOD.replace(b":55", b":56"), b"")
    )
    items = read("philly", tmp_path / "p.csv", rows)
    fault = only(items)
    assert (fault.line, fault.code) == (3, "three")
    assert [item.line for item in items if isinstance(item, Translated)] == [2, 4]


def test_a_row_that_was_read_by_column_can_be_a_fault_later(tmp_path: Path) -> None:
    items = read("philly", tmp_path / "p.csv", b"\n".join((PHILLY, GOOD, GOOD.replace(b":55", b":56"), b"")))
    last = items[-1]
    assert isinstance(last, Translated)
    assert last.as_fault is not None
    fault = last.as_fault(last.line, BadRecord("too much", code="amount-too-large", hint="none"))
    assert (fault.line, fault.code, fault.raw) == (3, "amount-too-large", GOOD.replace(b":55", b":56"))
    assert fault.message == f"{tmp_path}/p.csv:3: too much"
