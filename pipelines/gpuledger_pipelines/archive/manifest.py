"""What stands beside each file of the archive: its digest, its sums, and which row of the book it is as known at."""

import datetime as dt
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gpuledger.kernel.errors import Corrupt, NotFound, Refused, Unavailable
from gpuledger.streams.appending import sync_folder
from gpuledger_pipelines.archive.contents import SCHEMA_VERSION
from gpuledger_pipelines.archive.layout import DATA, MANIFEST, Place

FORMAT = "gpuledger.archive"
WRITE_AGAIN = "gpuledger archive write --cluster {cluster} --from {day} --to {after} writes it anew"

_BLOCK = 1 << 20


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest, key by key as in its file.

    Args:
        format: ``gpuledger.archive``.
        schema: Version of the columns.
        dataset: ``usage`` or ``telemetry``.
        cluster: The cluster, which is also the book.
        day: The UTC day, ISO 8601.
        bytes: Size of the file.
        sha256: Of the file, in hex.
        rows: How many.
        sums: Of usage ``gpu_ms``; of telemetry, after the name of the rung, ``sampled_gpu_ms``, ``used_gpu_upms`` and
            ``owned_sampled_gpu_ms``, which is that of rows with an account.
        known_seq: The newest row of the book when the file was written: it holds what was known then.
        checksum: SHA-256 of this manifest with an empty checksum, in hex.
    """

    format: str
    schema: int
    dataset: str
    cluster: str
    day: str
    bytes: int
    sha256: str
    rows: int
    sums: dict[str, int]
    known_seq: int
    checksum: str = ""


def sealed(manifest: Manifest) -> Manifest:
    """Return a manifest with the checksum that belongs to it."""
    bare = msgspec.structs.replace(manifest, checksum="")
    return msgspec.structs.replace(bare, checksum=hashlib.sha256(encode(bare)).hexdigest())


def read(root: Path, place: Place) -> Manifest:
    """Return the manifest of a partition.

    Raises:
        NotFound: When there is none.
        Corrupt: When it is none, or that of another partition.
        Refused: When a newer version of this program wrote it.
        Unavailable: When it cannot be read.
    """
    path = place.folder(root) / MANIFEST
    content = content_of(path, hint=again(place))
    try:
        found = msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise Corrupt(f"{path} is no manifest: {error}", hint=again(place)) from error
    if found.format != FORMAT or (found.dataset, found.cluster, found.day) != (
        place.dataset, place.cluster, place.day.isoformat(),
    ):  # fmt: skip
        raise Corrupt(f"{path} is the manifest of another file", hint=again(place))
    if found.schema != SCHEMA_VERSION:
        raise Refused(
            f"{path} has schema {found.schema}, and this version reads {SCHEMA_VERSION}",
            hint="use the version of gpuledger that wrote it, or a newer one",
        )
    if content != encode(sealed(found)):
        raise Corrupt(f"{path} was changed: its checksum is that of another text", hint=again(place))
    return found


def find(root: Path, place: Place) -> Manifest | None:
    """Return the manifest of a partition; None when there is none, or none that holds."""
    try:
        return read(root, place)
    except (NotFound, Corrupt):
        return None


def data_of(root: Path, manifest: Manifest, place: Place) -> Path:
    """Return the file that a manifest tells of, once its size was looked at.

    Raises:
        NotFound: When it is not there.
        Corrupt: When it is another one.
    """
    path = place.folder(root) / DATA
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise NotFound(f"{path} is missing", hint=again(place)) from error
    if size != manifest.bytes:
        raise Corrupt(
            f"{path} has {size:,} bytes, and its manifest tells of {manifest.bytes:,}", hint=again(place)
        )
    return path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            hashed.update(block)
    return hashed.hexdigest()


def publish(path: Path, content: bytes) -> None:
    """Put a small file in its place at once: whoever reads sees it, or the one before.

    Raises:
        Unavailable: When it cannot be written.
    """
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)


def write(root: Path, manifest: Manifest, place: Place) -> None:
    """Put a manifest in its place."""
    publish(place.folder(root) / MANIFEST, encode(sealed(manifest)))


def again(place: Place) -> str:
    """Return the command that writes a file anew, for a hint."""
    after = place.day + dt.timedelta(days=1)
    return WRITE_AGAIN.format(cluster=place.cluster, day=place.day, after=after)


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Tell of a disk that refuses in the words of the errors of this project."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{error.filename or path} cannot be written: {error.strerror or error}",
            hint="check the free space and the permissions, then run gpuledger archive write again",
        ) from error


def encode(value: object) -> bytes:
    """Return a value as JSON for people and programs."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def content_of(path: Path, hint: str = "") -> bytes:
    """Return what a small file of the archive holds.

    Raises:
        NotFound: When it is not there.
        Unavailable: When it cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"{path} is missing", hint=hint) from error
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", hint="check the permissions") from error
