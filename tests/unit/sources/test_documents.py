import gzip
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.documents import Document, open_document


def document(tmp_path: Path, text: bytes) -> Document:
    file = tmp_path / "document.json"
    file.write_bytes(text)
    return open_document(file)


def test_each_member_is_a_piece_with_the_line_on_which_it_begins(tmp_path: Path) -> None:
    found = document(
        tmp_path, b'{"meta": {"v": [1]},\n "jobs": [\n {"a": 1,\n  "b": 2}, {"a": 1}\n,\n{"a": 1}]}'
    )
    pieces = list(found.pieces("jobs"))
    assert [(p.number, p.raw) for p in pieces] == [
        (3, b'{"a": 1,\n  "b": 2}'),
        (4, b'{"a": 1}'),
        (6, b'{"a": 1}'),
    ]
    assert {p.position for p in pieces} == {found.size}
    assert found.value("meta", "v") == [1]
    assert found.value("meta", "w") is None
    assert found.oddities == []


def test_what_cannot_be_read_is_refused_where_it_is_asked_for_and_nowhere_else(tmp_path: Path) -> None:
    found = document(tmp_path, b'{"a": ["\x80"], "b": 1, "c": null}')
    assert (found.has("a"), found.has("b"), found.has("c"), found.has("d")) == (True, True, False, False)
    assert found.value("b") == 1
    assert len(list(found.pieces("a"))) == 1
    with pytest.raises(Refused, match="a cannot be read"):
        found.value("a")


def test_a_greeting_is_passed_over_and_reported(tmp_path: Path) -> None:
    found = document(tmp_path, b'Welcome [to] login1\n\n{"jobs": [\n1]}')
    assert [(p.number, p.raw) for p in found.pieces("jobs")] == [(4, b"1")]
    ((code, message),) = found.oddities
    assert (code, message) == ("banner", "19 bytes before the JSON are passed over: 'Welcome [to] login1'")


def test_a_byte_order_mark_is_no_greeting(tmp_path: Path) -> None:
    assert document(tmp_path, b'\xef\xbb\xbf{"jobs": []}').oddities == []


@pytest.mark.parametrize("before", [b"", b" \n", b"hello\n"])
def test_the_document_may_be_the_array(tmp_path: Path, before: bytes) -> None:
    found = document(tmp_path, before + b'[\n{"a": [1]}, 2]')
    assert [p.raw for p in found.pieces()] == [b'{"a": [1]}', b"2"]


def test_an_empty_array_has_no_pieces(tmp_path: Path) -> None:
    assert list(document(tmp_path, b"[]").pieces()) == []


def test_a_compressed_document_is_read_as_it_was(tmp_path: Path) -> None:
    found = document(tmp_path, gzip.compress(b'{"jobs": [1, 2]}'))
    assert [p.raw for p in found.pieces("jobs")] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"no jobs today\n", "holds no JSON document"),
        (b'{"jobs": [1, 2', "cannot be read as a JSON object"),
        (b'{"other": []}', "jobs is missing"),
        (b'{"jobs": null}', "jobs is not an array"),
        (b'{"jobs": 3}', "jobs is not an array"),
        (b'{"jobs": "\xff"}', "jobs is not an array"),
        (b'{"jobs": ' + b"[" * 5000 + b"]" * 5000 + b"}", "cannot be read as a JSON object"),
        (gzip.compress(b'{"jobs": []}', mtime=0)[:-9], "cut short"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message) as caught:
        list(document(tmp_path, text).pieces("jobs"))
    assert "document.json" in caught.value.message
    assert caught.value.hint
