import gzip
from pathlib import Path

import pytest

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.lines import LINE_LIMIT_BYTES, Broken, Line
from gpuledger.sources.slurm.scontrol import read_blocks, words


def blocks(tmp_path: Path, text: bytes) -> list[Line | Broken]:
    path = tmp_path / "listing"
    path.write_bytes(text)
    return list(read_blocks(path, "JobId"))


def test_a_block_goes_on_to_the_next_key_at_the_start_of_a_line(tmp_path: Path) -> None:
    found = blocks(tmp_path, b"\nJobId=1 A=1\n   B=2\n\nJobId=2\n   C=JobId=3\n JobId=4\n")
    assert [(block.number, block.raw) for block in found] == [
        (2, b"JobId=1 A=1\n   B=2"),
        (5, b"JobId=2\n   C=JobId=3\n JobId=4"),
    ]
    assert all(isinstance(block, Line) and block.ended for block in found)


def test_blocks_may_have_a_line_each_and_the_last_no_line_end(tmp_path: Path) -> None:
    found = blocks(tmp_path, b"\xef\xbb\xbfJobId=1 A=1\nJobId=2 A=2")
    assert [(block.raw, isinstance(block, Line) and block.ended) for block in found] == [
        (b"JobId=1 A=1", True),
        (b"JobId=2 A=2", False),
    ]


@pytest.mark.parametrize(
    "text", [b"NodeName=n1\n", b"No jobs in the system\n", b" JobId=1\n", b"{}\n", b"\n\n"]
)
def test_a_file_that_begins_otherwise_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(Refused, match="does not begin with JobId="):
        blocks(tmp_path, text)


def test_damage_breaks_the_block_that_it_is_in(tmp_path: Path) -> None:
    text = b"JobId=1 A=1\nJobId=2 A=2\n   B=3\n"
    first, second = blocks(tmp_path, gzip.compress(text)[:-9])
    assert first.raw == b"JobId=1 A=1"
    assert isinstance(second, Broken)
    assert (second.number, second.code, second.partial) == (2, "truncated-gzip", True)
    assert second.raw.startswith(b"JobId=2 A=2")


def test_a_line_that_is_too_long_breaks_its_block_and_no_other(tmp_path: Path) -> None:
    long = b"   Comment=" + b"x" * LINE_LIMIT_BYTES
    first, second = blocks(tmp_path, b"JobId=1\n" + long + b"\n   B=1\nJobId=2\n")
    assert isinstance(first, Broken)
    assert (first.number, first.code) == (1, "line-too-long")
    assert second.raw == b"JobId=2"


def test_a_block_without_an_end_is_not_kept_in_memory(tmp_path: Path) -> None:
    line = b"   x" * 10_000 + b"\n"
    first, second = blocks(tmp_path, b"JobId=1\n" + line * 60 + b"JobId=2\n")
    assert isinstance(first, Broken)
    assert first.code == "line-too-long"
    assert len(first.raw) < LINE_LIMIT_BYTES + len(line) + 100
    assert second.raw == b"JobId=2"


def test_the_wanted_words_are_found_wherever_they_stand() -> None:
    raw = b"JobId=8 Name=x y\n   TRES=cpu=1,gres/gpu=2 Reason=(null)\n   S:C:T=1:2 Empty= State=N/A"
    assert words(raw, ("JobId", "TRES", "Reason", "S:C:T", "Empty", "State", "Absent")) == {
        "JobId": "8",
        "TRES": "cpu=1,gres/gpu=2",
        "Reason": "",
        "S:C:T": "1:2",
        "Empty": "",
        "State": "",
        "Absent": "",
    }


def test_a_word_that_stands_there_twice_is_never_chosen_from() -> None:
    raw = b"JobId=8 Name=x TRES=gres/gpu=0\n   TRES=cpu=1,gres/gpu=2"
    assert words(raw, ("JobId",)) == {"JobId": "8"}
    with pytest.raises(BadRecord, match="TRES: stands there twice") as caught:
        words(raw, ("JobId", "TRES"))
    assert caught.value.code == "key-twice"


@pytest.mark.parametrize(("raw", "code"), [(b"JobId=\xff", "not-utf8"), (b"JobId=1\0", "nul-byte")])
def test_bytes_that_are_no_text_are_a_fault(raw: bytes, code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        words(raw, ("JobId",))
    assert caught.value.code == code
