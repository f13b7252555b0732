"""Take a backup: one snapshot, dumped whole, with the heads that its books had in it."""

import os
from pathlib import Path

import sqlalchemy as sa

from gpuledger.backup import manifest
from gpuledger.backup.manifest import Head, Manifest
from gpuledger.backup.programs import program, run
from gpuledger.database.engine import Reader, reading
from gpuledger.database.opening import newest_revision, revision
from gpuledger.kernel.clock import Clock
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.queries import book_heads


def take(engine: sa.Engine, backup: Path, clock: Clock) -> Manifest:
    """Write a backup and its manifest, each whole or not at all; return the manifest.

    Writers go on meanwhile: the dump and the heads are of one snapshot.

    Args:
        engine: The database.
        backup: The file to write; there must be none.
        clock: The present.

    Raises:
        Refused: When the file is there already, cannot be written, or the schema is not this version's.
        Unavailable: When the dump fails.
    """
    path = manifest.path_of(backup)
    for each in (backup, path):
        if each.exists():
            raise Refused(f"{each} is there already", hint="name another file: a backup overwrites nothing")
    if not backup.parent.is_dir():
        raise Refused(f"{backup.parent} is no folder", hint="make it, or name another")
    at = revision(engine)
    if at != newest_revision():
        raise Refused(
            f"the schema is at {at}, not at this version's",
            hint="gpuledger db upgrade, or the version of the schema",
        )
    draft = backup.with_name(f".{backup.name}.part")
    try:
        with reading(engine) as reader:
            snapshot = str(reader.execute(sa.text("SELECT pg_export_snapshot()")).scalar_one())
            taken_at, heads, server = clock.now(), heads_of(reader), server_of(reader)
            url = engine.url.render_as_string(hide_password=False)
            major = int(server.split(".")[0])
            options = ["--format=custom", f"--snapshot={snapshot}", f"--file={draft}"]
            run(program("pg_dump", major), url, options)
        os.chmod(draft, 0o600)  # it holds names of people  # noqa: PTH101
        told = manifest.made(draft, taken_at=taken_at, revision=at, server=server, heads=heads)
        _write(path, manifest.text(told))
        draft.replace(backup)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Refused(f"{backup}: cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return told


def heads_of(reader: Reader) -> tuple[Head, ...]:
    """Return every book with its rows and head."""
    return tuple(Head(book=each.book, rows=each.rows, head=each.head) for each in book_heads(reader))


def server_of(reader: Reader) -> str:
    """Return the server's version, such as ``18.6``."""
    return str(reader.execute(sa.text("SHOW server_version")).scalar_one()).split()[0]


def _write(path: Path, content: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
