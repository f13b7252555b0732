"""Every code that a record can be refused with is in the one list, and the list is in the docs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuledger.kernel.reasons import REASONS, sentence_of

ROOMS = ("events", "ingest", "sources", "streams")
"""Where records are read; what other rooms call a code is a kind of movement."""

REFUSE = ("ledger/org_orders.py",)
"""Where a book refuses what was read."""

ODD = {"Anomaly", "_odd"}
"""These tell what is odd about a record that is accepted all the same; no dead letter has such a code."""

WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def _named(code: ast.expr) -> Iterator[str]:
    """Yield the words that an argument can come to; one that is passed on has its words elsewhere."""
    if isinstance(code, ast.IfExp):
        yield from _named(code.body)
        yield from _named(code.orelse)
    elif isinstance(code, ast.Constant) and isinstance(code.value, str):
        yield code.value


def _positions(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Return, for each function and class of these rooms that takes a ``code``, the place of that argument."""
    found: dict[str, int] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                names = [
                    a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in {"self", "cls"}
                ]
                name = node.name
            elif isinstance(node, ast.ClassDef):
                init = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
                fields = [
                    n.target.id
                    for n in node.body
                    if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
                ]
                names = [a.arg for a in init[0].args.args[1:]] if init else fields
                name = node.name
            else:
                continue
            if "code" in names and name not in ODD:
                found[name] = names.index("code")
    return found


def raised(services: Path) -> dict[str, str]:
    """Return each code that a record is refused with, and one place where it is."""
    read = [path for room in ROOMS for path in (services / room).rglob("*.py")]
    trees = {path: ast.parse(path.read_text()) for path in (*read, *(services / name for name in REFUSE))}
    places = _positions(trees)
    codes: dict[str, str] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [k.value for k in node.keywords if k.arg == "code" and called not in ODD]
            if called in places:
                given += node.args[places[called] : places[called] + 1]
            codes |= {word: f"{path.name}:{node.lineno}" for code in given for word in _named(code)}
    return codes


@pytest.fixture(scope="module")
def services(repository: Path) -> Path:
    return repository / "services/gpuledger"


def test_the_scan_sees_codes_however_they_are_given(services: Path) -> None:
    """By keyword, by a choice of two, by place, and in an error that never leaves its module."""
    assert {"bad-field", "not-a-time", "missing-value", "corrupt-gzip", "own-type"} <= raised(services).keys()


def test_every_code_that_is_raised_is_in_the_list(services: Path) -> None:
    missing = {code: place for code, place in raised(services).items() if code not in REASONS}
    assert missing == {}, (
        "add it to kernel/reasons.py with a sentence, and to the table of docs/dead-letters.md"
    )


def test_every_code_of_the_list_is_raised(services: Path) -> None:
    assert REASONS.keys() - raised(services).keys() == set()


def test_codes_are_sorted_words_and_sentences_are_sentences() -> None:
    assert list(REASONS) == sorted(REASONS)
    assert all(WORD.fullmatch(code) for code in REASONS)
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in REASONS.values())


def test_the_docs_hold_the_list_as_it_is(repository: Path) -> None:
    page = (repository / "docs/dead-letters.md").read_text()
    table = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.+?) \|", page, re.MULTILINE))
    assert {code: table.get(code) for code in REASONS} == dict(REASONS)


def test_a_code_of_another_version_is_no_error() -> None:
    assert "reason" in sentence_of("of-the-future")
    assert sentence_of("own-type") == REASONS["own-type"]
