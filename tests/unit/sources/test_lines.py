"""Lines come out whole and numbered, and damage is told once."""

import gzip
import hashlib
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.kernel.errors import Refused
from gpuledger.sources import lines
from gpuledger.sources.lines import (
    LINE_LIMIT_BYTES,
    RAW_LIMIT_BYTES,
    Broken,
    Line,
    Lines,
    each_line,
    open_parts,
    read_lines,
    read_parts,
    read_whole,
)

TEXT = b"".join(b"%06d,%s\n" % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(20_000))
ROWS = TEXT.split(b"\n")[:-1]


def read(path: Path, content: bytes) -> list[Line | Broken]:
    path.write_bytes(content)
    return list(read_lines(path))


def raws(items: list[Line | Broken]) -> list[bytes]:
    return [item.raw for item in items if isinstance(item, Line)]


def only_broken(items: list[Line | Broken]) -> Broken:
    (broken,) = [item for item in items if isinstance(item, Broken)]
    return broken


@pytest.mark.parametrize("name", ["plain.csv", "misnamed.gz"])
@pytest.mark.parametrize("compressed", [False, True])
def test_compression_is_read_from_the_bytes_and_not_from_the_name(
    tmp_path: Path, name: str, *, compressed: bool
) -> None:
    content = gzip.compress(TEXT) if compressed else TEXT
    items = read(tmp_path / name, content)
    assert raws(items) == ROWS
    assert [item.number for item in items] == list(range(1, len(ROWS) + 1))
    positions = [item.position for item in items]
    assert positions == sorted(positions)
    assert positions[-1] == len(content)


def test_members_one_after_the_other_and_padding(tmp_path: Path) -> None:
    content = gzip.compress(TEXT[:5000]) + b"\0" * 9 + gzip.compress(TEXT[5000:]) + b"\0" * 100
    assert raws(read(tmp_path / "f", content)) == ROWS


def test_a_last_line_without_newline_is_a_line_that_says_so(tmp_path: Path) -> None:
    items = read(tmp_path / "f", b"a\nb")
    assert [(item.raw, item.ended) for item in items if isinstance(item, Line)] == [
        (b"a", True),
        (b"b", False),
    ]


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_gzip_gives_all_complete_lines_and_one_fault(tmp_path: Path, keep: float) -> None:
    whole = gzip.compress(TEXT)
    content = whole[: int(len(whole) * keep)]
    available = zlib.decompressobj(31).decompress(content)
    items = read(tmp_path / "cut.csv.gz", content)
    *complete, rest = available.split(b"\n")
    assert raws(items) == complete
    broken = only_broken(items)
    assert broken is items[-1]
    assert broken.code == "truncated-gzip"
    assert broken.raw == rest
    assert broken.partial
    assert f"cut.csv.gz:{len(complete) + 1}" in broken.message
    assert f"last good line is {len(complete)}" in broken.message
    assert broken.hint


def test_a_gzip_cut_inside_its_trailer_keeps_every_line(tmp_path: Path) -> None:
    items = read(tmp_path / "f", gzip.compress(TEXT)[:-3])
    assert raws(items) == ROWS
    assert only_broken(items).code == "truncated-gzip"


def test_a_wrong_checksum_is_told_after_every_line(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(TEXT))
    content[-6] ^= 1
    items = read(tmp_path / "f", bytes(content))
    assert raws(items) == ROWS
    assert only_broken(items).code == "corrupt-gzip"
    assert "checksum" in only_broken(items).message


def test_damage_inside_the_data_keeps_the_lines_before_it(tmp_path: Path) -> None:
    whole = gzip.compress(TEXT)
    middle = len(whole) // 2
    items = read(tmp_path / "f", whole[:middle] + b"\xff" * 200 + whole[middle + 200 :])
    good = raws(items)
    before = zlib.decompressobj(31).decompress(whole[:middle]).count(b"\n")
    assert good[:before] == ROWS[:before]
    assert only_broken(items).code == "corrupt-gzip"


def test_bytes_after_the_last_member_are_told(tmp_path: Path) -> None:
    items = read(tmp_path / "f", gzip.compress(TEXT) + b"tail")
    assert raws(items) == ROWS
    assert only_broken(items).code == "corrupt-gzip"


@pytest.mark.parametrize("compressed", [False, True])
def test_a_line_of_ten_megabytes_is_one_fault_and_reading_goes_on(
    tmp_path: Path, *, compressed: bool
) -> None:
    long = b"x" * 10_000_000
    content = b"a\n" + long + b"\nb\nc\n"
    items = read(tmp_path / "long.csv", gzip.compress(content) if compressed else content)
    assert raws(items) == [b"a", b"b", b"c"]
    broken = only_broken(items)
    assert (broken.number, broken.code, broken.raw, broken.partial) == (2, "line-too-long", long, False)
    assert "long.csv:2" in broken.message
    assert "10000000 bytes" in broken.message


def test_of_a_huge_line_the_beginning_is_kept_with_length_and_digest(tmp_path: Path) -> None:
    long = b"0123456789abcdef" * ((RAW_LIMIT_BYTES // 16) + 100)
    items = read(tmp_path / "f", long + b"\nb\n")
    broken = only_broken(items)
    assert broken.raw == long[:RAW_LIMIT_BYTES]
    assert hashlib.sha256(long).hexdigest() in broken.message
    assert str(len(long)) in broken.message
    assert raws(items) == [b"b"]


@pytest.mark.parametrize(("length", "fits"), [(LINE_LIMIT_BYTES, True), (LINE_LIMIT_BYTES + 1, False)])
def test_the_limit_is_exact(tmp_path: Path, length: int, *, fits: bool) -> None:
    items = read(tmp_path / "f", b"y" * length + b"\n")
    assert isinstance(items[0], Line) is fits


def test_files_that_cannot_be_read_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"nowhere.csv does not exist"):
        list(read_lines(tmp_path / "nowhere.csv"))
    with pytest.raises(Refused, match="is a folder"):
        list(read_lines(tmp_path))
    with pytest.raises(Refused, match=r"empty.csv is empty"):
        read(tmp_path / "empty.csv", b"")


def test_memory_is_bounded_by_blocks(tmp_path: Path) -> None:
    """A gzip that unpacks to 200 MB of short lines is read in blocks."""
    member = gzip.compress(b"0123456789\n" * 100_000)
    (tmp_path / "f").write_bytes(member * 20)
    longest = 0
    count = 0
    for block, _ in lines._blocks(tmp_path / "f", (tmp_path / "f").open("rb")):
        longest = max(longest, len(block))
        count += block.count(b"\n")
    assert count == 2_000_000
    assert longest <= lines._BLOCK_BYTES + 1024


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(min_size=1, max_size=300), compressed=st.booleans(), cut=st.integers(0, 40))
def test_no_byte_is_lost_or_invented(tmp_path: Path, content: bytes, cut: int, *, compressed: bool) -> None:
    packed = gzip.compress(content) if compressed else content
    packed = packed[: max(3, len(packed) - cut)] if compressed else packed
    items = read(tmp_path / "f", packed)
    joined = b"".join(item.raw + (b"\n" if isinstance(item, Line) and item.ended else b"") for item in items)
    if not compressed and not content.startswith(b"\x1f\x8b"):
        assert joined == content
    elif compressed:
        assert content.startswith(joined)
        if cut == 0:
            assert joined == content


def test_a_whole_file_is_read_with_its_size_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "whole"
    file.write_bytes(gzip.compress(b"x" * 100_000))
    assert read_whole(file) == (b"x" * 100_000, file.stat().st_size)


def test_a_whole_file_that_is_damaged_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "whole"
    file.write_bytes(gzip.compress(b"x" * 100_000)[:-3])
    with pytest.raises(Refused, match="cut short"):
        read_whole(file)
    file.write_bytes(b"x" * 100_000)
    monkeypatch.setattr(lines, "WHOLE_LIMIT_BYTES", 99_999)
    with pytest.raises(Refused, match="more than 99999 bytes in one document"):
        read_whole(file)


def test_a_file_is_opened_at_once_and_its_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(lines.BYTE_ORDER_MARK + b"a\nb")
    assert [line.raw for line in lines.open_lines(path)] == [b"a", b"b"]
    with pytest.raises(Refused, match="does not exist"):
        lines.open_lines(tmp_path / "nowhere")
    for content in (b"", gzip.compress(b"")):
        path.write_bytes(content)
        with pytest.raises(Refused, match="is empty"):
            lines.open_lines(path)
    path.write_bytes(gzip.compress(b"a\nb")[:-6])
    assert isinstance(list(lines.open_lines(path))[-1], Broken)


def test_lines_that_were_read_at_once_come_together_and_are_the_same_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(TEXT + b"rest")
    parts = list(read_parts(path))
    assert isinstance(parts[0], Line)
    assert any(isinstance(part, Lines) and part.text.count(b"\n") > 100 for part in parts)
    assert list(each_line(parts)) == list(read_lines(path))
    assert parts[-1] == Line(len(ROWS) + 1, b"rest", len(TEXT) + 4, ended=False)


def test_parts_of_a_file_are_opened_at_once_too(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfa\nb\nc\n")
    assert list(open_parts(path)) == [Line(1, b"a", 9, ended=True), Lines(2, b"b\nc", 9)]
    with pytest.raises(Refused, match="does not exist"):
        open_parts(tmp_path / "nowhere")
