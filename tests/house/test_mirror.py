"""Every module that decides something has a test file of its name.

``services/gpuledger/ledger/journal.py`` is mirrored by ``tests/unit/ledger/test_journal.py``, or by a file
of that name under another kind of test (``property``, ``contract``, ``integration``, …). The folders below
the kind may leave parts of the package path out, or stand joined in the name (``test_ledger_journal.py``).
"""

import ast
from itertools import combinations
from pathlib import Path

import pytest

UNMIRRORED: set[str] = set()
"""Modules without a test file of their name: a debt that may only shrink."""


@pytest.fixture(scope="module")
def unmirrored(repository: Path, code_files: list[Path], python_files: list[Path]) -> set[str]:
    tests = {_below_kind(path) for path in python_files if path.parts[0] == "tests"}
    return {
        str(path)
        for path in code_files
        if path.parts[0] != "migrations"  # they are tested by running them: tests/migration
        and _decides(ast.parse((repository / path).read_text()))
        and tests.isdisjoint(_mirrors(path))
    }


def test_every_module_has_a_test_file(unmirrored: set[str]) -> None:
    missing = sorted(unmirrored - UNMIRRORED)
    assert not missing, "no test file of their name:\n" + "\n".join(missing)


def test_no_exemption_outlives_its_reason(unmirrored: set[str]) -> None:
    paid = sorted(UNMIRRORED - unmirrored)
    assert not paid, "mirrored by now, strike them off:\n" + "\n".join(paid)


def _below_kind(test: Path) -> tuple[str, ...]:
    return (*test.parts[2:-1], test.stem)


def _mirrors(module: Path) -> set[tuple[str, ...]]:
    """Return every place, relative to a kind of test, where the module's test may stand."""
    # services/gpuledger/ledger -> ledger; dashboards/gpuledger_dashboards/app_pages -> dashboards, app_pages.
    packages = module.parts[2:-1] if module.parts[0] == "services" else (module.parts[0], *module.parts[2:-1])
    stem = packages[-1] if module.stem == "__init__" and packages else module.stem
    if module.stem == "__init__":
        packages = packages[:-1]
    return {
        (*folders, f"test_{'_'.join((*packages[len(packages) - joined :], stem))}")
        for kept in range(len(packages) + 1)
        for folders in combinations(packages, kept)
        for joined in range(len(packages) + 1)
    }


def _decides(tree: ast.Module) -> bool:
    """Say whether any function has a body: protocols and plain values have nothing to test."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(not isinstance(node, ast.Expr) for function in functions for node in function.body)
