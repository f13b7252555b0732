"""What a backup says of itself, in a file beside it: its digest, and the heads that its books had."""

import datetime as dt
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import NotFound, Refused

VERSION = 1
_PIECE = 1 << 20


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where a book stood.

    Args:
        book: The book.
        rows: How many rows it had.
        head: The hash of the newest one, in hexadecimal.
    """

    book: str
    rows: int
    head: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a backup.

    Args:
        version: Of this form.
        taken_at: When the snapshot was taken.
        revision: The schema's revision.
        server: The server that it was taken of, such as ``18.6``.
        bytes: How long the backup is.
        sha256: Its digest, in hexadecimal.
        heads: Every book as the snapshot has it.
    """

    version: int
    taken_at: str
    revision: str
    server: str
    bytes: int
    sha256: str
    heads: tuple[Head, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A book that is not as its backup says.

    Args:
        book: The book.
        what: How it differs.
    """

    book: str
    what: str

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return asdict(self)


def path_of(backup: Path) -> Path:
    """Return where the manifest of a backup lies: beside it."""
    return backup.with_name(f"{backup.name}.json")


def made(
    backup: Path, *, taken_at: dt.datetime, revision: str, server: str, heads: tuple[Head, ...]
) -> Manifest:
    """Return the manifest of a backup that is written."""
    return Manifest(
        version=VERSION,
        taken_at=iso(taken_at),
        revision=revision,
        server=server,
        bytes=backup.stat().st_size,
        sha256=digest(backup),
        heads=heads,
    )


def text(manifest: Manifest) -> str:
    """Return a manifest as its file has it."""
    return json.dumps(msgspec.to_builtins(manifest), indent=2) + "\n"


def read(backup: Path) -> Manifest:
    """Return the manifest of a backup that is the one that it was made of.

    Raises:
        NotFound: When the backup or its manifest is not there.
        Refused: When the manifest is none, or the backup is not the file that it tells of.
    """
    path = path_of(backup)
    for each in (backup, path):
        if not each.is_file():
            raise NotFound(f"{each} is not there", hint="gpuledger backup FILE writes FILE and FILE.json")
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise Refused(f"{path}: is no manifest of a backup: {error}") from error
    if found.version != VERSION:
        raise Refused(f"{path}: version {found.version}, this gpuledger reads {VERSION}")
    if (size := backup.stat().st_size) != found.bytes:
        raise Refused(
            f"{backup}: {size:,} bytes, its manifest says {found.bytes:,}", hint="the copy is not whole"
        )
    if digest(backup) != found.sha256:
        raise Refused(f"{backup}: its SHA-256 is not that of its manifest", hint="a byte of it was changed")
    return found


def differences(told: Manifest, there: tuple[Head, ...]) -> list[Difference]:
    """Return the books that are not as a backup says, those that are missing or too many too."""
    wanted, found = ({each.book: each for each in heads} for heads in (told.heads, there))
    said = []
    for book in sorted(wanted.keys() | found.keys()):
        before, after = wanted.get(book), found.get(book)
        if before is None:
            said.append(Difference(book, "the backup has no such book"))
        elif after is None:
            said.append(Difference(book, f"missing; it had {before.rows:,} rows"))
        elif before != after:
            said.append(
                Difference(
                    book,
                    f"{after.rows:,} rows and head {after.head[:16]}, not {before.rows:,} and {before.head[:16]}",
                )
            )
    return said


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
