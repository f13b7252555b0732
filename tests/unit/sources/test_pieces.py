from collections.abc import Mapping
from pathlib import Path

import pytest

from gpuledger.events.envelope import make
from gpuledger.events.host import Retired
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.lines import LINE_LIMIT_BYTES, read_lines
from gpuledger.sources.pieces import Facts, Interpreter, interpret, interpret_again, remembered
from gpuledger.sources.protocol import Fault, ImportOptions, Translated


class Hosts(Interpreter):
    """A host's name on each line; one that begins with a dash is none."""

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self.prefix = (context or {}).get("prefix", "p")

    def remember(self, raw: bytes) -> dict[str, object]:
        return {"prefix": "kept"}

    def translate(self, raw: bytes) -> Facts:
        if raw.startswith(b"-"):
            raise BadRecord("host: '-' is no name", code="bad-name", hint="name it")
        if raw == b"nothing":
            return (), ()
        host = f"{self.prefix}-{raw.decode()}"
        fact = Retired(cluster=self.options.cluster or "c", host=host, gpus=1, gpu_model="m")
        return (make(id=host, source="s", at_s=1, data=fact),), [("odd", "host: is odd")]


def read(tmp_path: Path, text: bytes) -> list[Translated | Fault]:
    file = tmp_path / "hosts"
    file.write_bytes(text)
    return list(
        interpret(file, read_lines(file), Hosts(ImportOptions(cluster="x", timezone="UTC")), offset=5)
    )


def test_every_piece_is_facts_or_a_fault_and_the_next_is_looked_at(tmp_path: Path) -> None:
    first, second, third = read(tmp_path, b"a\n\nnothing\n-\nb")
    assert isinstance(first, Translated)
    assert (first.line, first.events[0][0].id, first.bytes_read) == (1, "p-a", 19)
    assert [(a.code, a.message) for a in first.anomalies] == [("odd", f"{tmp_path}/hosts:1: host: is odd")]
    assert isinstance(second, Fault)
    assert (second.line, second.code, second.hint, second.raw) == (4, "bad-name", "name it", b"-")
    assert second.message == f"{tmp_path}/hosts:4: host: '-' is no name"
    assert isinstance(third, Translated)
    assert [a.code for a in third.anomalies] == ["odd", "no-final-newline"]


def test_a_line_that_is_too_long_is_a_fault_that_no_retry_mends(tmp_path: Path) -> None:
    fault, after = read(tmp_path, b"x" * (LINE_LIMIT_BYTES + 1) + b"\nb\n")
    assert isinstance(fault, Fault)
    assert fault.code == "line-too-long"
    assert isinstance(after, Translated)
    with pytest.raises(BadRecord, match=":1: the record has more than"):
        interpret_again(Hosts, fault.raw, fault.context)


def test_a_retry_knows_the_options_and_what_was_remembered(tmp_path: Path) -> None:
    (fault,) = read(tmp_path, b"-\n")
    assert isinstance(fault, Fault)
    again = interpret_again(Hosts, b"mended", fault.context)
    assert (again.line, again.events[0][0].id, again.events[0][0].data.cluster) == (1, "kept-mended", "x")  # type: ignore[attr-defined]
    with pytest.raises(BadRecord, match=":1: host: '-' is no name"):
        interpret_again(Hosts, fault.raw, fault.context)


@pytest.mark.parametrize("context", [{}, {"path": 1, "line": 1}, {"path": "p", "line": "1"}])
def test_a_context_that_names_no_place_is_refused(context: dict[str, object]) -> None:
    with pytest.raises(BadRecord, match="does not say which file") as caught:
        interpret_again(Hosts, b"a", context)
    assert caught.value.code == "no-context"


def test_only_the_beginning_of_a_record_is_not_read_again() -> None:
    with pytest.raises(BadRecord, match="only the beginning"):
        interpret_again(Hosts, b"a", {"path": "p", "line": 1, "partial": True})


class _Following(Hosts):
    """Remembers that earlier pieces told of the host."""

    told_before = frozenset(("followed",))

    def remember(self, raw: bytes) -> dict[str, object]:
        return {"team": "a", "followed": True}


def test_what_earlier_pieces_told_is_nothing_that_a_piece_which_was_understood_may_rest_on() -> None:
    """Its facts were refused by the ledger: none of them is told, and a retry tells them all."""
    interpreter = _Following(ImportOptions())
    assert remembered(interpreter, b"x", is_understood=False) == {"team": "a", "followed": True}
    assert remembered(interpreter, b"x", is_understood=True) == {"team": "a"}
    assert remembered(Hosts(ImportOptions()), b"x", is_understood=True) == Hosts(ImportOptions()).remember(
        b"x"
    )
