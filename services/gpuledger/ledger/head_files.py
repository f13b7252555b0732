"""The file, or the Git folder, that heads are exported to.

A line is appended under a lock and flushed to the disk before anything is said about it. What a crash
leaves of an unfinished line is not a line: readers pass over it, and the next export cuts it off. Nothing
else in the file ever changes, so that it can lie on storage where nothing else can.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger.heads import ExportedHead, Exports, lines, parse
from gpuledger.streams.appending import sync_folder

FILE_NAME = "heads.jsonl"
"""The file in a Git folder."""

_GIT_WAIT_S = 60
_AUTHOR = ("-c", "user.name=gpuledger", "-c", "user.email=gpuledger@localhost")


def read(path: Path) -> Exports:
    """Read the heads in a file or Git folder.

    Raises:
        Refused: When it cannot be read, holds no head, or a line is none.
    """
    file = _file(path)
    try:
        exports = parse(file.read_bytes(), str(file))
    except OSError as error:
        raise Refused(
            f"{file} cannot be read: {error.strerror}",
            hint="name what gpuledger audit export-heads wrote: the file or its Git folder",
        ) from error
    if not exports.heads:
        raise Refused(f"{file} holds no exported head", hint="there is nothing to hold the ledger against")
    return exports


@contextmanager
def opened(path: Path) -> Iterator["HeadsFile"]:
    """Open a file of heads, or the one in a Git folder, for one export at a time.

    Raises:
        Refused: When it cannot be opened, when a line of it is no head, or when a Git folder has no Git.
        Unavailable: When it cannot be written.
    """
    folder = path if path.is_dir() else None
    if folder is not None and shutil.which("git") is None:
        raise Refused("git is not installed", hint=f"install git, or name a file instead of {path}")
    file = _file(path)
    created = not file.exists()
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Refused(
            f"{file} cannot be opened: {error.strerror}", hint="name a file in a folder that exists"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if created:
            sync_folder(file.parent)
        with os.fdopen(os.dup(descriptor), "rb") as content:
            exports = parse(content.read(), str(file))
        yield HeadsFile(file, folder, descriptor, exports)
    finally:
        os.close(descriptor)  # which gives the lock back


@dataclass(frozen=True, slots=True)
class HeadsFile:
    """A file of heads that nobody else writes to now.

    Args:
        file: Its path.
        folder: The Git folder it lies in, if it was named by one.
        descriptor: Open for appending.
        exports: What it holds.
    """

    file: Path
    folder: Path | None
    descriptor: int
    exports: Exports

    def append(self, heads: Sequence[ExportedHead]) -> None:
        """Append heads; they are on the disk when this returns, or none of them is.

        Raises:
            Unavailable: When the file cannot be written.
        """
        size = os.fstat(self.descriptor).st_size - len(self.exports.rest)
        try:
            if self.exports.rest:  # what a crash left; storage that only grows takes no truncation
                os.ftruncate(self.descriptor, size)
            remaining = memoryview(lines(heads))
            while remaining:
                remaining = remaining[os.write(self.descriptor, remaining) :]
            os.fsync(self.descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self.descriptor, size)
            raise Unavailable(
                f"{self.file} cannot be written: {error.strerror}",
                hint="check the free space and the permissions, then export again",
            ) from error

    def commit(self) -> str | None:
        """Commit the file, and no other, where it lies in a Git folder and differs from what is committed.

        Returns:
            The commit, or None when there was nothing to commit.

        Raises:
            Refused: When Git refuses; the heads stay in the file, and the next export commits them.
        """
        if self.folder is None:
            return None
        _git(self.folder, "add", "--", FILE_NAME)
        if not _git(self.folder, "status", "--porcelain", "--", FILE_NAME):
            return None
        _git(
            self.folder,
            "commit",
            "--quiet",
            "--only",
            "--message=Export the heads of the ledger",
            "--",
            FILE_NAME,
        )
        return _git(self.folder, "rev-parse", "HEAD")


def _file(path: Path) -> Path:
    """Return the file that a path names.

    Raises:
        Refused: When it is a folder without Git.
    """
    if not path.is_dir():
        return path
    if not (path / ".git").exists():
        raise Refused(f"{path} is a folder without Git", hint=f"name a file, or run git init {path}")
    return path / FILE_NAME


def _git(folder: Path, *arguments: str) -> str:
    # The caller's GIT_DIR and its like, set inside a hook, would name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ran = subprocess.run(
            ["git", *_AUTHOR, *arguments],  # noqa: S607 - whichever git the operator has
            cwd=folder,
            env={**environment, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"git {arguments[0]} in {folder} did not end: {error}") from error
    if ran.returncode != 0:
        said = (ran.stderr or ran.stdout).strip()
        raise Refused(
            f"git {arguments[0]} in {folder} was refused: {said}",
            hint=f"the heads are in {FILE_NAME}; mend the repository and export again to commit them",
        )
    return ran.stdout.strip()
