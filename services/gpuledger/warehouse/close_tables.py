"""Tables of sealed closes, column by column: written by whoever closes, never by a roll-up.

They follow from the journal like all others; they show a period as sealed, and all others show it as known.
"""

import sqlalchemy as sa

from gpuledger.database.metadata import METADATA, Instant

Column, Text, BigInteger = sa.Column, sa.Text, sa.BigInteger

_WEIGHTED = "gpu_ms x per mille: "
_PHYSICAL = "gpu_ms: "


def _key() -> list[sa.Column[str]]:
    return [
        Column("cluster", Text, primary_key=True, comment="the cluster, which is also the book"),
        Column("period", Text, primary_key=True, comment="the budget period, such as 2026-11"),
    ]


def _version() -> sa.Column[int]:
    return Column(
        "version",
        BigInteger,
        primary_key=True,
        autoincrement=False,
        comment="1 for the first close of the period, one more after each reopening",
    )


def _amount(name: str, comment: str) -> sa.Column[int]:
    return Column(name, BigInteger, nullable=False, comment=comment)


close = sa.Table(
    "close",
    METADATA,
    *_key(),
    _version(),
    Column(
        "state",
        Text,
        nullable=False,
        comment="how far it has come: frozen, settled, validated, sealed, published; or reopened",
    ),
    Column("closing_seq", BigInteger, nullable=False, comment="journal row that fixed what it is made of"),
    Column("closed_seq", BigInteger, comment="journal row that settled it; null before"),
    Column("sealed_seq", BigInteger, comment="journal row that holds the digest; null before"),
    Column(
        "reopened_seq", BigInteger, comment="journal row from which it no longer holds; null while it does"
    ),
    Column("org_seq", BigInteger, nullable=False, comment="newest journal row of ~org that it is made of"),
    Column("starts_at", Instant, nullable=False, comment="the period's first instant"),
    Column("ends_at", Instant, nullable=False, comment="the period's end, exclusive"),
    Column(
        "silent_sources",
        BigInteger,
        nullable=False,
        comment="sources that had not told all up to the period's end; a number",
    ),
    Column(
        "unexplained_runs",
        BigInteger,
        comment="runs that differ from the scheduler's record without a cause; a number, null when nobody compared",
    ),
    Column(
        "checks", BigInteger, comment="expectations that held when it was validated; a number, null before"
    ),
    Column("digest", Text, comment="SHA-256 of the canonical file, hexadecimal; null until it is sealed"),
    Column("document", Text, comment="the canonical file, byte for byte in UTF-8; null until it is sealed"),
    Column("frozen_at", Instant, nullable=False, comment="when the closing row was recorded"),
    Column("sealed_at", Instant, comment="when the sealed row was recorded; null before"),
    Column("published_at", Instant, comment="when its files were written last; null before"),
    schema="warehouse",
    comment="one row per version of the close of a period",
)

statement = sa.Table(
    "statement",
    METADATA,
    *_key(),
    _version(),
    Column("account", Text, primary_key=True, comment="the leaf account, or ~own of an inner one"),
    _amount("granted_gpu_ms_weighted", f"{_WEIGHTED}given for the period"),
    _amount("rolled_in_gpu_ms_weighted", f"{_WEIGHTED}left by the period before, below zero for a debt"),
    _amount("transferred_gpu_ms_weighted", f"{_WEIGHTED}from other accounts, less what went to them"),
    _amount("credited_gpu_ms_weighted", f"{_WEIGHTED}given back for failures of hardware"),
    _amount("charged_gpu_ms_weighted", f"{_WEIGHTED}allocated time"),
    _amount("held_gpu_ms_weighted", f"{_WEIGHTED}set aside, neither charged nor released"),
    _amount("expired_gpu_ms_weighted", f"{_WEIGHTED}used by nobody, below zero by an overrun"),
    _amount(
        "rolled_out_gpu_ms_weighted",
        f"{_WEIGHTED}that part of it that went into the next period, below zero for a debt",
    ),
    _amount("unallocated_gpu_ms_weighted", f"{_WEIGHTED}free time, charged to nobody"),
    _amount("left_gpu_ms_weighted", f"{_WEIGHTED}left in the budget, 0 once it is settled"),
    _amount("allocated_gpu_ms", f"{_PHYSICAL}allocated time of GPUs, whatever the model weighs"),
    _amount("unallocated_gpu_ms", f"{_PHYSICAL}free time of GPUs, whatever the model weighs"),
    schema="warehouse",
    comment="what a close sealed for each account; amounts by the period that they were booked into",
)

__all__ = ["close", "statement"]
