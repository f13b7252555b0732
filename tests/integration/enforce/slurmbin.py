"""Slurm's commands as they answered on a real cluster; what they are told to change is written down, and done."""

from pathlib import Path

import pytest
from tests.collecting import Bin

FIXTURES = Path(__file__).parents[2] / "fixtures" / "enforce" / "slurm"


class SlurmBin:
    """Programs that print recorded answers.

    Args:
        folder: Where the programs, their answers and what they were told lie.
        patch: Sets the PATH.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.bin = Bin(folder / "bin", patch)
        self.answers = folder / "answers"
        self.answers.mkdir()
        self.told = folder / "told"
        for path in FIXTURES.iterdir():
            (self.answers / path.name).write_text(path.read_text())
        at = self.answers

        def note(name: str) -> str:
            return f'echo "{name} $*" >> {self.told}'

        show = f'*"show assoc"*) cat {at}/assoc.psv;; *"show qos"*) cat {at}/qos.psv;;'
        self.bin.put("sacctmgr", f'case "$*" in {show} *) {note("sacctmgr")};; esac')
        self.bin.put(
            "scontrol", f'case "$*" in *"show config"*) cat {at}/config.txt;; *) {note("scontrol")};; esac'
        )
        for name in ("sshare", "squeue", "sinfo"):
            self.bin.put(name, f"cat {at}/{name}.psv")

    def change(self, name: str, old: str, new: str) -> None:
        """Let an answer be another one."""
        text = (self.answers / name).read_text()
        assert old in text
        (self.answers / name).write_text(text.replace(old, new))

    def commands(self) -> list[str]:
        """Return what the programs were told to change."""
        return self.told.read_text().splitlines() if self.told.exists() else []
