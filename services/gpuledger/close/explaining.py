"""Why two versions of a close differ: the journal rows in between, which sum to the difference."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from gpuledger.close import statement
from gpuledger.close.comparing import Change, changes, flat
from gpuledger.close.making import make
from gpuledger.database.engine import Reader
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import close_sums
from gpuledger.ledger.booked import Moved


@dataclass(frozen=True, slots=True)
class Row:
    """A journal row that moved something in the period, and what it moved: (account, column) -> amount."""

    moved: Moved
    amounts: dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What differs between two versions, and why.

    Args:
        cluster: The cluster.
        period: The budget period.
        before: The earlier version.
        after: The later one.
        changes: Amounts that differ.
        rows: The rows in between.
    """

    cluster: str
    period: str
    before: int
    after: int
    changes: list[Change]
    rows: list[Row]

    @property
    def is_explained(self) -> bool:
        """Whether the rows in between sum to the difference, amount by amount."""
        summed: dict[tuple[str, str], int] = {}
        for row in self.rows:
            for place, amount in row.amounts.items():
                summed[place] = summed.get(place, 0) + amount
        told = {(change.account, change.column): change.difference for change in self.changes}
        return {place: amount for place, amount in summed.items() if amount} == told

    def as_json(self) -> dict[str, Any]:
        """Return it under the published keys."""
        return {
            "cluster": self.cluster,
            "period": self.period,
            "from_version": self.before,
            "to_version": self.after,
            "explained": self.is_explained,
            "changes": [{**change._asdict(), "difference": change.difference} for change in self.changes],
            "rows": [_row(row) for row in self.rows],
        }


def explain(reader: Reader, cluster: str, period: str, before: int, after: int) -> Explanation:
    """Compare two versions of a close as the journal has them, and find the rows that lie in between.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        period: The budget period.
        before: The earlier version.
        after: The later one.

    Raises:
        Refused: When there is no such version, or they are not in order.
        Conflict: When one is not settled.
    """
    if before >= after:
        raise Refused(f"version {before} is not before version {after}", hint="--from is the earlier one")
    old, new = (make(reader, cluster, period, version) for version in (before, after))
    first_seq = old.rows.reopened_seq
    assert first_seq is not None  # noqa: S101 - a later version was begun after the earlier one was reopened
    moved = close_sums.moved(reader, cluster, period, first_seq, new.rows.reopened_seq)
    # Who got accounts below it in between is told under the later version's name in both.
    sums = close_sums.sums(reader, cluster, period, old.rows)
    renamed = msgspec.structs.replace(old.document, accounts=statement.lines(sums, new.inner))
    rows = [Row(each, _amounts(each, new.inner)) for each in moved]
    return Explanation(cluster, period, before, after, changes(renamed, new.document), rows)


def _amounts(moved: Moved, inner: Collection[str]) -> dict[tuple[str, str], int]:
    lines = statement.lines(moved.sums, inner)
    return {(line.account, column): amount for line in lines for column, amount in flat(line).items()}


def _row(row: Row) -> dict[str, Any]:
    told = row.moved._asdict()
    del told["sums"]
    return {
        **told,
        "recorded_at": iso(row.moved.recorded_at),
        "effective_at": iso(row.moved.effective_at),
        "amounts": [
            {"account": account, "column": column, "amount": amount}
            for (account, column), amount in row.amounts.items()
        ],
    }
