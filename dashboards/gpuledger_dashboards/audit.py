"""From books and closes to the page of the audit: what is sealed, what waits, and how to prove it. Pure."""

import shlex
from collections.abc import Mapping, Sequence

from gpuledger.client.answers import Books, BookStatus
from gpuledger.client.records import CloseRow
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import UNKNOWN, instant


def headline(books: Books) -> str:
    """Return the books in one sentence."""
    rows = sum(book.rows for book in books.books)
    said = f"{rows:,} rows in {len(books.books)} books"
    if books.dead_letters:
        return f"{said}; {books.dead_letters:,} records could not be read and wait for a person."
    return f"{said}; every record could be read."


def chains(books: Sequence[BookStatus]) -> list[dict[str, str]]:
    """Return books as rows of a table, with the head that proves each."""
    return [
        {
            "Book": book.book,
            "Rows": f"{book.rows:,}",
            "Newest row": instant(book.last_recorded_at),
            "Head": book.head,
        }
        for book in books
    ]


def closes(found: Sequence[CloseRow]) -> list[dict[str, str]]:
    """Return closes as rows of a table, the newest period first, of each the newest version."""
    newest = sorted(found, key=lambda one: (one.period, one.cluster, one.version), reverse=True)
    return [
        {
            "Period": one.period,
            "Cluster": one.cluster,
            "Version": str(one.version),
            "State": one.state
            if one.reopened_seq is None
            else f"{one.state}, reopened by row {one.reopened_seq}",
            "Sealed": UNKNOWN if one.sealed_at is None else instant(one.sealed_at),
            "Digest": one.digest or "not sealed",
        }
        for one in newest
    ]


def verifying(found: Sequence[CloseRow]) -> str:
    """Return the commands that prove the books, and the newest sealed close."""
    lines = ["gpuledger audit verify"]
    sealed = [one for one in found if one.digest is not None]
    if sealed:
        newest = max(sealed, key=lambda one: (one.period, one.cluster, one.version))
        lines.append(shlex.join(("gpuledger", "close", "verify", newest.period, "--cluster", newest.cluster)))
    return "\n".join(lines)


def no_closes() -> empty.Why:
    """Return why there is no close."""
    return empty.Why(
        "No budget period was closed yet.",
        "The schedule closes a period once it is over and every source has told of it; this closes one by hand.",
        "gpuledger close run 2026-11 --cluster NAME --dry-run",
    )


def unread() -> empty.Why:
    """Return what to do about records that could not be read."""
    return empty.Why(
        "Each is kept with its place and a reason.",
        "Mend what the reason names, then let them be read again.",
        "gpuledger dlq list",
    )


def csv_rows(books: Sequence[BookStatus]) -> list[Mapping[str, object]]:
    """Return books as rows of a download: heads to keep elsewhere."""
    return [
        {"book": book.book, "rows": book.rows, "head": book.head, "last_recorded_at": book.last_recorded_at}
        for book in books
    ]
