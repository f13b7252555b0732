"""Lines become records, whatever is missing; what only a person can say refuses a file."""

from collections.abc import Iterator

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.sources.blocks import blocks, opened
from gpuledger.sources.lines import LINE_LIMIT_BYTES, Broken, Line
from gpuledger.sources.protocol import Fault, Translated


def lines(*raws: bytes) -> list[Line]:
    return [Line(number, raw, number * 10, ended=True) for number, raw in enumerate(raws, start=1)]


def found(pieces: Iterator[Line | Broken]) -> list[tuple[int, bytes]]:
    return [(piece.number, piece.raw) for piece in pieces]


def test_a_record_goes_from_one_first_line_to_the_next() -> None:
    pieces = blocks(lines(b"x", b"#", b"a", b"b", b"#", b"c"), begins=lambda raw: raw == b"#")
    assert found(pieces) == [(1, b"x"), (2, b"#\na\nb"), (5, b"#\nc")]


def test_a_record_ends_with_its_last_line() -> None:
    pieces = blocks(lines(b"a", b"!", b"b", b"!", b"c"), ends=lambda raw: raw == b"!")
    assert found(pieces) == [(1, b"a\n!"), (3, b"b\n!"), (5, b"c")]


def test_damage_ends_a_record_and_is_passed_on() -> None:
    damage = Broken(2, "truncated-gzip", "m", "h", b"", 20, partial=True)
    pieces = list(blocks([*lines(b"a"), damage]))
    assert found(iter(pieces)) == [(1, b"a"), (2, b"")]
    assert pieces[1] is damage


def test_a_record_that_never_ends_is_cut_and_reported() -> None:
    line = b"x" * (LINE_LIMIT_BYTES // 2)
    pieces = list(blocks(lines(line, line, b"end"), ends=lambda raw: raw == b"end"))
    assert isinstance(pieces[0], Broken)
    assert (pieces[0].code, pieces[0].number) == ("record-too-long", 1)
    assert found(iter(pieces[1:])) == [(3, b"end")]


def fault(code: str) -> Fault:
    return Fault(1, code, "what", "do this", b"", {}, "p")


def test_a_file_whose_first_record_lacks_what_a_person_can_say_is_refused() -> None:
    with pytest.raises(Refused, match="what") as caught:
        opened(iter([fault("no-host"), fault("no-host")]))
    assert caught.value.hint == "do this"


def test_a_later_record_that_lacks_it_is_a_fault_like_any_other() -> None:
    items: list[Translated | Fault] = [fault("bad-xid"), fault("no-host")]
    assert list(opened(iter(items))) == items
    assert list(opened(iter([]))) == []


def test_a_file_without_a_record_is_refused_before_the_first_is_asked_for() -> None:
    with pytest.raises(Refused, match="no log"):
        opened(iter([]), lambda: Refused("no log", hint="save one"))
    assert list(opened(iter([]), lambda: None)) == []


def test_a_file_of_faults_that_proves_to_be_of_another_kind_is_refused_when_it_was_read() -> None:
    items = opened(iter([fault("bad-xid")]), lambda: Refused("no log", hint="save one"))
    assert next(items) == fault("bad-xid")
    with pytest.raises(Refused, match="no log"):
        next(items)
