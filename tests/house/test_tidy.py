"""Files and functions stay short, names say something, nothing is left over from debugging.

An exemption is a debt: it may only fall. A file or function that has become short enough must leave the
list, and one that grows past its number fails.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60

LONG_FILES: dict[str, int] = {}
"""Path: lines it is allowed."""

LONG_FUNCTIONS: dict[str, int] = {}
"""``path::qualified.name``: lines it is allowed."""

EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "data2", "info"}

DEBUGGERS = {"breakpoint", "set_trace"}


def test_files_are_short(repository: Path, python_files: list[Path]) -> None:
    lengths = {str(path): len((repository / path).read_text().splitlines()) for path in python_files}
    assert _beyond(lengths, FILE_LINES, LONG_FILES) == {}


def test_functions_are_short(repository: Path, python_files: list[Path]) -> None:
    lengths = {
        f"{path}::{name}": length
        for path in python_files
        for name, length in _functions(ast.parse((repository / path).read_text()))
    }
    assert _beyond(lengths, FUNCTION_LINES, LONG_FUNCTIONS) == {}


def test_no_exemption_outlives_its_reason(repository: Path, python_files: list[Path]) -> None:
    files = {str(path) for path in python_files}
    functions = {
        f"{path}::{name}"
        for path in python_files
        for name, length in _functions(ast.parse((repository / path).read_text()))
        if length > FUNCTION_LINES
    }
    assert LONG_FILES.keys() <= files
    assert LONG_FUNCTIONS.keys() <= functions


def test_no_module_has_an_empty_name(product_files: list[Path]) -> None:
    names = {part for path in product_files for part in (*path.parts[:-1], path.stem)}
    assert names & EMPTY_NAMES == set()


def test_nothing_is_left_of_a_debugging_session(repository: Path, python_files: list[Path]) -> None:
    calls = [
        f"{path}:{call.lineno}"
        for path in python_files
        for call in ast.walk(ast.parse((repository / path).read_text()))
        if isinstance(call, ast.Call) and _called(call) in DEBUGGERS
    ]
    assert calls == []


COMMAND_LINES = {"cli", "login"}
"""Packages of commands, which are there to print."""


def test_only_the_command_lines_print(repository: Path, code_files: list[Path]) -> None:
    prints = [
        f"{path}:{call.lineno}"
        for path in code_files
        if COMMAND_LINES.isdisjoint(path.parts)
        for call in ast.walk(ast.parse((repository / path).read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
    ]
    assert prints == []


def test_an_ignored_rule_gives_its_reason_or_its_code(repository: Path, python_files: list[Path]) -> None:
    bare = [
        f"{path}:{number}"
        for path in python_files
        if path.name != Path(__file__).name
        for number, line in enumerate((repository / path).read_text().splitlines(), start=1)
        if line.rstrip().endswith(("# noqa", "# type: ignore"))
    ]
    assert bare == []


def _beyond(lengths: dict[str, int], limit: int, exempt: dict[str, int]) -> dict[str, int]:
    return {name: length for name, length in lengths.items() if length > exempt.get(name, limit)}


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, (node.end_lineno or node.lineno) - node.lineno + 1
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        else:
            yield from _functions(node, prefix)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
