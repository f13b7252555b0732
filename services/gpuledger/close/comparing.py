"""Two files of one close, or of two versions of it: what differs, and in which input that lies. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gpuledger.close.document import Book, Document, Line, Physical, Weighted

JOURNAL, POSTINGS, POLICIES, STREAMS = "journal", "postings", "policy data", "positions of streams"
SOURCES, RECONCILIATION, ZONES = (
    "heartbeats of sources",
    "comparison with the scheduler's record",
    "time-zone data",
)


class Differs(NamedTuple):
    """Something that is not what was sealed.

    Args:
        input: In which input of the close.
        place: Where in it.
        what: What differs.
    """

    input: str
    place: str
    what: str

    def told(self) -> str:
        """Return it in one line."""
        return f"{self.input}: {self.place}: {self.what}"


class Change(NamedTuple):
    """An amount of an account that differs between two versions.

    Args:
        account: The account.
        column: The amount's name, with its unit: ``charged_gpu_ms_weighted``, ``allocated_gpu_ms``.
        before: What the earlier version says.
        after: What the later one says.
    """

    account: str
    column: str
    before: int
    after: int

    @property
    def difference(self) -> int:
        """The later less the earlier."""
        return self.after - self.before


def differences(sealed: Document, found: Document) -> Iterator[Differs]:
    """Yield what a file that was made anew says otherwise than the one that was sealed, by the input it comes from."""
    if sealed.time != found.time:
        yield Differs(
            JOURNAL, f"row {found.books[-1].last_seq} of {found.cluster}", "zone and bounds of the period"
        )
    for before, after in zip(sealed.books, found.books, strict=False):
        yield from _of_book(before, after)
    for name, kind in (
        ("offsets", STREAMS), ("sources", SOURCES), ("policies", POLICIES), ("reconciled", RECONCILIATION),
        ("supersedes", JOURNAL), ("version", JOURNAL),
    ):  # fmt: skip
        if getattr(sealed, name) != getattr(found, name):
            yield Differs(
                kind, name, f"was {_short(getattr(sealed, name))}, is {_short(getattr(found, name))}"
            )
    for change in changes(sealed, found):
        yield Differs(POSTINGS, change.account, f"{change.column} was {change.before}, is {change.after}")
    if sealed.late != found.late:
        yield Differs(POSTINGS, "late", "what was booked for earlier periods")


def changes(before: Document, after: Document) -> list[Change]:
    """Return the amounts that differ between two files, by account."""
    lines = [{line.account: line.amounts() for line in document.accounts} for document in (before, after)]
    old, new = lines
    nothing = Line(account="", weighted=Weighted(), physical=Physical()).amounts()
    return [
        Change(account, column, was, now)
        for account in sorted(old.keys() | new.keys())
        for column, was, now in _paired(old.get(account, nothing), new.get(account, nothing))
        if was != now
    ]


def flat(line: Line) -> dict[str, int]:
    """Return the amounts of a line that are not 0, under their names with units."""
    return {column: amount for column, amount in line.amounts().items() if amount}


def _of_book(before: Book, after: Book) -> Iterator[Differs]:
    place = f"rows {before.first_seq} to {before.last_seq} of {before.book}"
    if (before.journal_digest, before.rows, before.first_seq, before.last_seq) != (
        after.journal_digest, after.rows, after.first_seq, after.last_seq,
    ):  # fmt: skip
        yield Differs(
            JOURNAL,
            place,
            f"{after.rows} rows whose digest is not that of the {before.rows} that were sealed",
        )
    if (before.postings_digest, before.postings) != (after.postings_digest, after.postings):
        yield Differs(
            POSTINGS,
            place,
            f"{after.postings} postings whose digest is not that of the {before.postings} that were sealed",
        )
    if before.head != after.head:
        yield Differs(JOURNAL, f"row {before.last_seq} of {before.book}", "the head of the chain is another")


def _paired(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    return ((column, amount, new[column]) for column, amount in old.items())


def _short(value: Any) -> str:  # noqa: ANN401 - any part of a file
    text = msgspec.json.encode(value).decode()
    limit = 120
    return text if len(text) <= limit else text[: limit - 1] + "…"
