"""A scheduler's own commands: bounded in time, tried again, and blind to what whoever runs them prefers."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.kernel.retries import retry_context

TOLD = 300
"""Characters of a command's own complaint that a message repeats."""

PREFERENCES = ("SACCT_", "SQUEUE_", "SINFO_", "SLURM_TIME_FORMAT")
"""Variables that would change what Slurm's commands list, or how they write it."""

FORCED: Mapping[str, str] = {
    "TZ": "UTC",  # commands write times without an offset
    "LC_ALL": "C",
    "SLURM_BITSTR_LEN": "0",  # the tasks of an array in full, however many
}


class CommandFailed(Unavailable):
    """A scheduler's command failed, or took too long, as often as it was tried.

    Args:
        message: What happened.
        hint: What to do.
        said: What the command itself said; empty when it said nothing.
    """

    def __init__(self, message: str, *, hint: str = "", said: str = "") -> None:
        super().__init__(message, hint=hint)
        self.said = said


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs commands, and keeps what each printed last.

    Args:
        answers: The folder for what they printed.
        timeout_s: How long one call may take.
        attempts: How often a call that fails is made in all.
        pause_s: How long the first pause between two attempts is; each is longer than the one before.
    """

    answers: Path
    timeout_s: float = 120.0
    attempts: int = 3
    pause_s: float = 1.0

    def ask(self, *command: str) -> Path:
        """Write what a command prints into a file of its name, whole or not at all, and return the file.

        Raises:
            Refused: When the command is not installed here.
            CommandFailed: When it fails or takes too long, each time.
        """
        program = shutil.which(command[0])
        if program is None:
            raise Refused(
                f"{command[0]} is not installed here",
                hint="run this where the scheduler's own commands work, and put them on the PATH",
            )
        self.answers.mkdir(parents=True, exist_ok=True)
        draft = self.answers / f".{command[0]}.draft"
        for attempt in retry_context(
            on=CommandFailed, attempts=self.attempts, timeout=None, wait_initial=self.pause_s
        ):
            with attempt:
                self._run([program, *command[1:]], draft)
        return draft.replace(self.answers / f"{command[0]}.out")

    def _run(self, command: Sequence[str], draft: Path) -> None:
        name = Path(command[0]).name
        with draft.open("wb") as output:
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    env=surroundings(os.environ),
                    timeout=self.timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise CommandFailed(
                    f"{name} did not answer within {self.timeout_s:g} s",
                    hint="the scheduler may be overloaded; ask for less at once, or wait longer",
                ) from error
        if done.returncode != 0:
            told = done.stderr.decode("utf-8", "replace").strip()[-TOLD:]
            raise CommandFailed(
                f"{name} failed with status {done.returncode}: {told}",
                hint=f"run it by hand: {name} {' '.join(command[1:])}",
                said=told,
            )


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that a command runs in: another user's habits must not change what it prints."""
    kept = {name: value for name, value in environment.items() if not name.startswith(PREFERENCES)}
    return {**kept, **FORCED}
