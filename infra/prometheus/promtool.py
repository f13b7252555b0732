# ruff: noqa: INP001 - infra holds no package; who uses it puts the repository on the path
"""promtool, which knows whether rules are valid and fire when they should."""

import shutil
import subprocess
from pathlib import Path

from infra.debian import ensure, search_path

PACKAGES = ("prometheus",)


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run promtool in a folder, and return what it said; it is installed when it is missing.

    Raises:
        NotInstalled: When it is missing and cannot be installed.
    """
    ensure(PACKAGES, lambda: [] if shutil.which("promtool", path=search_path()) else ["promtool"])
    program = shutil.which("promtool", path=search_path())
    assert program is not None  # noqa: S101 - it was looked for just now
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
