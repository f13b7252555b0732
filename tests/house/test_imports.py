"""Who may import whom: the contracts of pyproject.toml hold, and cover every package."""

import subprocess
import sys
import tomllib
from pathlib import Path

HEAVY = {"alembic", "dagster", "fastapi", "great_expectations", "kafka", "pandas", "sqlalchemy", "streamlit"}


def test_the_import_contracts_hold(repository: Path) -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [lint_imports, "--no-cache"], cwd=repository, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


def test_the_contracts_name_every_import_package(repository: Path) -> None:
    tool = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]
    shipped = {Path(package).name for package in tool["hatch"]["build"]["targets"]["wheel"]["packages"]}
    assert set(tool["importlinter"]["root_packages"]) == shipped


def test_the_command_line_imports_nothing_heavy() -> None:
    """``gpuledger --help`` answers at once because of this."""
    program = f"import sys, gpuledger.cli; print(sorted({HEAVY} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
