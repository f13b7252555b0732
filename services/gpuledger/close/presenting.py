"""What a statement shows to people: the same tables and sentences, whatever they are printed on. Pure.

GPU-hours with one decimal, thousands separated; the exact amounts are in the sealed file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from gpuledger.close.document import Document, Physical, Weighted, digest, encode
from gpuledger.kernel.amounts import WEIGHT_ONE, people_gpu_hours
from gpuledger.kernel.clock import iso

COLUMNS = (
    ("granted", "Granted"), ("rolled_in", "Brought in"), ("transferred", "Transferred"), ("credited", "Credited"),
    ("charged", "Charged"), ("held", "Held"), ("expired", "Expired"), ("rolled_out", "Carried on"),
    ("unallocated", "Free use"),
)  # fmt: skip
"""Weighted amounts, in the order of the sum that they make, and what people call them."""

NOTHING = "\N{EN DASH}"
"""What stands in a table for no amount at all; one that rounds to nothing is 0.0."""

ABOUT = (
    "Granted, brought in, transferred and credited, less charged, held and expired, leave nothing: the budget of a"
    " closed period is settled. Carried on is the part of expired that went into the next period; below zero it is a"
    " debt. Free use is charged to nobody. GPU-hours, weighted as budgets are, with one decimal; physical is time of"
    " GPUs whatever their model weighs. The exact amounts are in close.json."
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Args:
        title: What it shows.
        columns: Their names; those of texts first, those of numbers after them.
        rows: Their cells.
        texts: The columns of texts: how much of the width each takes on paper, in per cent. Numbers share the rest.
        total: A last row that sums the others; none where it is empty.
        note: A sentence below it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Sequence[int] = (22,)
    total: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, ready to be printed.

    Args:
        title: Of which cluster and period.
        facts: What it is, in pairs of name and value.
        headline: The figures of all accounts together, in pairs of name and GPU-hours.
        tables: The accounts first.
        foot: The digest that it is sealed with.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    headline: Sequence[tuple[str, str]]
    tables: Sequence[Table]
    foot: str


def present(document: Document) -> Statement:
    """Return what people see of a close."""
    total = document.totals.weighted
    sealed = digest(encode(document))
    tables = [_accounts(document)]
    if document.late:
        tables.append(_late(document))
    tables += [_books(document), _policies(document), _sources(document)]
    return Statement(
        title=f"GPU-time statement: {document.cluster}, {document.period}",
        facts=_facts(document),
        headline=[
            ("budget", hours(total.granted + total.rolled_in)),
            ("charged", hours(total.charged)),
            ("credited", hours(total.credited)),
            ("expired", hours(total.expired)),
            ("carried on", hours(total.rolled_out)),
            ("free use", hours(total.unallocated)),
        ],
        tables=tables,
        foot=f"Sealed: SHA-256 of close.json is {sealed}",
    )


def hours(weighted: int) -> str:
    """Return a weighted amount as GPU-hours for people."""
    return people_gpu_hours(Decimal(weighted) / WEIGHT_ONE)


def _amounts(weighted: Weighted, physical: Physical) -> list[str]:
    amounts = [Decimal(getattr(weighted, name)) / WEIGHT_ONE for name, _ in COLUMNS]
    amounts.append(Decimal(physical.allocated + physical.unallocated))
    return [people_gpu_hours(gpu_ms) if gpu_ms else NOTHING for gpu_ms in amounts]


def _facts(document: Document) -> list[tuple[str, str]]:
    facts = [
        ("version", str(document.version)),
        (
            "period",
            f"{document.period}, {iso(document.time.starts_at)} to {iso(document.time.ends_at)}, exclusive",
        ),
        ("time zone", f"{document.time.timezone}, data {document.time.tzdata}"),
        ("accounts", str(document.totals.accounts)),
        ("scheduler's record", _compared(document)),
        ("silent sources", ", ".join(s.source for s in document.sources if s.silent) or "none"),
    ]
    if document.supersedes is not None:
        before = document.supersedes
        sealed_before = before.digest or "never sealed"
        facts.insert(
            1,
            (
                "in place of",
                f"version {before.version}, {sealed_before}, reopened by row {before.reopened_seq}",
            ),
        )
    return facts


def _compared(document: Document) -> str:
    told = document.reconciled
    if told is None:
        return "nobody compared"
    differences = ", ".join(f"{count} {kind}" for kind, count in told.differences.items()) or "no difference"
    return f"{told.runs:,} runs compared: {differences}; {told.unexplained} without a cause"


def _accounts(document: Document) -> Table:
    return Table(
        title="Accounts",
        columns=["Account", *(name for _, name in COLUMNS), "Physical"],
        rows=[[line.account, *_amounts(line.weighted, line.physical)] for line in document.accounts],
        total=["All accounts", *_amounts(document.totals.weighted, document.totals.physical)],
        note=ABOUT,
    )


def _late(document: Document) -> Table:
    return Table(
        title="Corrections of earlier periods, in the figures above",
        columns=["Account", "Period", *(name for _, name in COLUMNS), "Physical"],
        rows=[[late.account, late.period, *_amounts(late.weighted, late.physical)] for late in document.late],
        texts=(18, 7),
        note="Facts that came after their period was closed are booked in the open one.",
    )


def _books(document: Document) -> Table:
    return Table(
        title="Books",
        columns=["Book", "Head of the chain", "From row", "To row", "Postings"],
        rows=[
            [book.book, book.head, f"{book.first_seq:,}", f"{book.last_seq:,}", f"{book.postings:,}"]
            for book in document.books
        ],
        texts=(14, 50),
        note="The rows that this close is the first to hold; gpuledger close verify makes it anew from them.",
    )


def _policies(document: Document) -> Table:
    return Table(
        title="Policy data in force",
        columns=["Policy", "In force from", "Book", "Row"],
        rows=[[p.policy, iso(p.effective_at), p.book, f"{p.seq:,}"] for p in document.policies],
        texts=(30, 30, 20),
        note=""
        if document.policies
        else "None was set: every GPU weighs 1, every account has the same share.",
    )


def _sources(document: Document) -> Table:
    return Table(
        title="Sources and streams",
        columns=["Source or stream", "Told until, or read up to"],
        rows=[
            *(
                [s.source, iso(s.told_until_at) + (", silent since" if s.silent else "")]
                for s in document.sources
            ),
            *([f"{o.stream} [{o.partition}] by {o.consumer}", f"{o.position:,}"] for o in document.offsets),
        ],
        texts=(60, 40),
        note=""
        if document.sources or document.offsets
        else "No source sends heartbeats, and no stream was read.",
    )
