from pathlib import Path

import pytest

from gpuledger.kernel.errors import NotFound
from gpuledger.streams import lines
from gpuledger.streams.lines import LineReader
from gpuledger.streams.protocol import PositionLost


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.ndjson"


def test_an_unfinished_last_line_is_delivered_once_it_is_ended(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    reader = LineReader(path, 0)
    assert reader.read(10) == [b"one"]
    assert reader.read(10) == []
    assert reader.end() == 1

    with path.open("ab") as file:
        file.write(b"o\nthree\n")

    assert reader.read(10) == [b"two", b"three"]
    assert reader.line == reader.end() == 3


def test_an_unfinished_line_is_not_counted_as_a_position(path: Path) -> None:
    path.write_bytes(b"one\ntw")

    with pytest.raises(PositionLost, match="has 1 complete lines, the reader was at 2"):
        LineReader(path, 2)


def test_lines_longer_than_a_chunk_are_put_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 4)
    texts = [b"", b"a", b"abc", b"abcd", b"abcdefghijk", b"", b"abcdefgh", b"xyz"]
    path.write_bytes(b"".join(text + b"\n" for text in texts))

    for first in range(len(texts) + 1):
        for limit in range(1, 4):
            reader = LineReader(path, first)
            found: list[bytes] = []
            while batch := reader.read(limit):
                assert len(batch) <= limit
                found += batch
            assert found == texts[first:]
            assert reader.end() == len(texts)


def test_one_read_stops_at_its_budget_of_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CHUNK_BYTES", 8)
    monkeypatch.setattr(lines, "READ_BUDGET_BYTES", 16)
    path.write_bytes(b"1234567\n" * 10)
    reader = LineReader(path, 0)

    assert len(reader.read(1000)) == 2
    assert len(reader.read(1000)) == 2


def test_a_read_costs_what_it_returns_and_not_what_lies_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(b"x" * 999 + b"\n")
    with path.open("ab") as file:
        file.write((b"x" * 999 + b"\n") * 4000)
    reader = LineReader(path, 4000)
    read_bytes = 0
    read = lines.os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal read_bytes
        chunk = read(descriptor, length, offset)
        read_bytes += len(chunk)
        return chunk

    monkeypatch.setattr(lines.os, "pread", counting)
    assert len(reader.read(10)) == 1
    assert reader.read(10) == []
    assert reader.end() == 4001
    assert read_bytes < 3000


@pytest.mark.parametrize("at_end", [True, False])
def test_a_file_cut_below_the_reader_is_noticed(path: Path, *, at_end: bool) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    reader = LineReader(path, 3 if at_end else 2)

    path.write_bytes(b"one\n")

    with pytest.raises(PositionLost, match="has 4 bytes"):
        reader.read(10)
    with pytest.raises(PositionLost):
        reader.end()


def test_a_file_cut_above_the_reader_only_ends_earlier(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    reader = LineReader(path, 1)
    assert reader.end() == 3

    with path.open("r+b") as file:
        file.truncate(8)

    assert reader.end() == 2
    assert reader.read(10) == [b"two"]


def test_a_file_replaced_by_another_is_noticed_even_when_it_is_longer(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    reader = LineReader(path, 1)
    other = tmp_path / "other"
    other.write_bytes(b"one\ntwo\nthree\n")

    other.rename(path)

    with pytest.raises(PositionLost, match="replaced"):
        reader.read(10)


def test_a_file_rewritten_in_place_is_noticed_even_when_it_is_longer(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    reader = LineReader(path, 2)

    path.write_bytes(b"uno\ndos\ntres\n")

    with pytest.raises(PositionLost, match="rewritten"):
        reader.read(10)


def test_a_deleted_file_is_noticed(path: Path) -> None:
    path.write_bytes(b"one\n")
    reader = LineReader(path, 0)

    path.unlink()

    with pytest.raises(PositionLost, match="deleted"):
        reader.read(10)


def test_a_missing_file_is_not_found(path: Path) -> None:
    with pytest.raises(NotFound):
        LineReader(path, 0)
