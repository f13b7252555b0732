"""Commands of a scheduler that print what a test wants them to."""

import os
import shutil
from pathlib import Path

import pytest


class Bin:
    """A folder of programs; nothing but them and what a shell script needs is on the PATH.

    Args:
        folder: Where they are.
        patch: Sets the PATH until the test ends.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        # Slurm may be installed here: a program that a test did not put must not be found.
        patch.setenv("PATH", f"{folder}{os.pathsep}{_plain(folder.with_name('others'))}")

    def put(self, name: str, script: str) -> None:
        """Make a program of a shell script."""
        program = self.folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def take(self, name: str) -> None:
        """Make a program be missing."""
        (self.folder / name).unlink(missing_ok=True)


def _plain(folder: Path) -> Path:
    """Fill a folder with what shell scripts need."""
    folder.mkdir()
    for name in ("sh", "cat", "touch", "sleep"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return folder
