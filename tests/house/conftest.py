"""The files the house rules speak of."""

import subprocess
from pathlib import Path

import pytest

CODE_FOLDERS = ("services", "pipelines", "dashboards", "migrations")


@pytest.fixture(scope="session")
def product_files(repository: Path) -> list[Path]:
    """Every file that is, or is about to be, under version control; relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = sorted(set(listing.split("\0")) - {""})
    return [Path(name) for name in names if (repository / name).is_file()]


@pytest.fixture(scope="session")
def code_files(product_files: list[Path]) -> list[Path]:
    """The Python files of the four import packages."""
    return [path for path in product_files if path.suffix == ".py" and path.parts[0] in CODE_FOLDERS]


@pytest.fixture(scope="session")
def python_files(product_files: list[Path]) -> list[Path]:
    """Every Python file, tests and tools included."""
    return [path for path in product_files if path.suffix == ".py"]
