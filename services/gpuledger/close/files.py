"""The folder of a close: which files it holds, written whole or not at all."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.appending import sync_folder

CANONICAL = "close.json"
"""The file that is sealed; all others are made from it."""

SUMS = "SHA256SUMS"
"""The digests of the others, in the form that ``sha256sum --check`` reads."""


def folder_of(root: Path, cluster: str, period: str, version: int) -> Path:
    """Return the folder of a version of a close."""
    return root / quote(cluster, safe="") / period / f"v{version}"


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a close, and the list of their digests last.

    A file that has its bytes is left alone; each other is replaced at once: whoever reads sees one or the other.

    Raises:
        Unavailable: When they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in {**files, SUMS: sums(files)}.items():
            _write(folder / name, content)
        sync_folder(folder)
    except OSError as error:
        raise Unavailable(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            hint="check the free space and the permissions, then run the close again",
        ) from error


def sums(files: Mapping[str, bytes]) -> bytes:
    """Return the digests of files, a line each."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()
    ).encode()


def read(path: Path) -> bytes | None:
    """Return a file's bytes; None when there is none.

    Raises:
        Unavailable: When it is there and cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", hint="check the permissions") from error


def _write(path: Path, content: bytes) -> None:
    if read(path) == content:
        return
    # A name of this process's own: two who publish at once do not write into one file.
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
