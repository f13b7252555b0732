"""JSON objects one on each line, or all in one array."""

import gzip
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.lines import Broken
from gpuledger.sources.ndjson import open_objects


def raws(path: Path, content: bytes) -> list[tuple[int, bytes]]:
    path.write_bytes(content)
    return [(piece.number, piece.raw) for piece in open_objects(path) if piece.raw.strip()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (b'\n\n {"a":1}\nnonsense\n', [(3, b' {"a":1}'), (4, b"nonsense")]),
        (b'\xef\xbb\xbf{"a":1}', [(1, b'{"a":1}')]),
        (b'[{"a":1},\n{"b":2}]', [(1, b'{"a":1}'), (2, b'{"b":2}')]),
        (b'\n[\n{"a":1}]\n', [(3, b'{"a":1}')]),
        (b"[]", []),
        (b'x{"a":1}\n{"b":2}\n', [(1, b'x{"a":1}'), (2, b'{"b":2}')]),
        (b"x\n" * 99 + b'{"b":2}\n', [*((n, b"x") for n in range(1, 100)), (100, b'{"b":2}')]),
    ],
)
def test_objects_are_found(tmp_path: Path, content: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert raws(tmp_path / "o", content) == expected


@pytest.mark.parametrize("content", [b"a,b\n", b"\n\n", b'"text"', b"3\n", b"x\n" * 100 + b"{}\n"])
def test_what_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused):
        raws(tmp_path / "o", content)


def test_a_damaged_beginning_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "o").write_bytes(gzip.compress(b'{"a":1}\n{"b":2}')[:-6])
    assert isinstance(list(open_objects(tmp_path / "o"))[-1], Broken)
