"""``gpuledger audit export-heads``."""

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import print_json, print_table


def export_heads(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A file, or a folder with a Git repository in it.")
    ],
    as_json: Json = False,
) -> None:
    """Append the head of every book to a file, or to heads.jsonl in a Git folder and commit it.

    Keep it where whoever holds the database cannot write: `audit verify --heads` then finds rows, books
    and whole chains that were taken away or sealed anew. Books that did not grow add nothing.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Corrupt
    from gpuledger.ledger import head_files, heads, queries

    clock = SystemClock()
    with open_database(settings.load()) as engine, head_files.opened(path) as file:
        # The snapshot is taken under the lock, so that a slower export cannot append an older head.
        with reading(engine) as reader:
            bad = heads.contradicted(reader, heads.newest(file.exports.heads))
            moved = heads.moved(file.exports.heads, queries.book_heads(reader), clock.now())
        if bad:
            raise Corrupt(
                "; ".join(f"book {book}, {fault.told()}" for book, fault in sorted(bad.items())),
                hint=f"nothing was exported; gpuledger audit verify --heads {path} holds every head against the ledger",
            )
        if moved:
            file.append(moved)
        commit = file.commit()
    if as_json:
        exported = [{"book": h.book, "rows": h.rows, "head": h.head} for h in moved]
        print_json({"path": str(file.file), "exported": exported, "commit": commit})
        return
    if moved:
        print_table(["book", ">rows", "head"], [(h.book, f"{h.rows:,}", h.head[:16]) for h in moved])
    print(f"{len(moved)} heads appended to {file.file}" if moved else "no head has changed")
    if commit:
        print(f"committed as {commit[:12]}")
