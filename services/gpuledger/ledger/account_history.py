"""The tree of accounts with its dates: when each came, and which share and overdraft were set from when on."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import parent
from gpuledger.kernel.clock import instant, iso
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.copying import driver


@dataclass(frozen=True, slots=True)
class Setting:
    """What was set for an account.

    Args:
        since: From when on it holds, until the next one.
        seq: The row of ``~org`` that set it.
        value: The share, or ``soft`` or ``hard``.
    """

    since: dt.datetime
    seq: int
    value: int | str


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account, and what was ever set for it, by the time from which it holds.

    Args:
        created_seq: The row of ``~org`` that made it.
        created_at: From when on it exists.
        is_leaf: Whether nothing lies below it.
    """

    account: str
    created_seq: int
    created_at: dt.datetime
    is_leaf: bool
    shares: tuple[Setting, ...]
    overdrafts: tuple[Setting, ...]

    def as_json(self, at_s: int) -> dict[str, Any]:
        """Return the account under its published keys, with what is in force at an instant."""
        at = instant(at_s)
        return {
            "account": self.account,
            "parent": parent(self.account),
            "is_leaf": self.is_leaf,
            "created_seq": self.created_seq,
            "created_at": iso(self.created_at),
            "share": _in_force(self.shares, at),
            "overdraft": _in_force(self.overdrafts, at),
            "shares": [{"from": iso(one.since), "share": one.value, "seq": one.seq} for one in self.shares],
            "overdrafts": [
                {"from": iso(one.since), "overdraft": one.value, "seq": one.seq} for one in self.overdrafts
            ],
        }


def account_history(reader: Reader, as_of: dt.datetime | None = None) -> list[AccountRow]:
    """Return every account in the order of paths, as the books had it at a recorded time; now unless given."""
    seq = seq_of(vector_of(reader, as_of), ORG_BOOK)
    rows = (
        driver(reader)
        .execute(
            "SELECT a.path, a.created_seq, j.effective_at FROM ledger.accounts AS a"
            " JOIN ledger.journal AS j ON j.book = %(org)s AND j.seq = a.created_seq"
            " WHERE %(seq)s::bigint IS NULL OR a.created_seq <= %(seq)s ORDER BY a.path",
            {"org": ORG_BOOK, "seq": seq},
        )
        .fetchall()
    )
    inner = {above for path, *_ in rows if (above := parent(path)) is not None}
    shares = _settings(reader, "SELECT account, from_at, set_seq, share FROM ledger.shares", seq)
    overdrafts = _settings(reader, "SELECT account, from_at, set_seq, overdraft FROM ledger.overdrafts", seq)
    return [
        AccountRow(
            path, created_seq, created_at, path not in inner, shares.get(path, ()), overdrafts.get(path, ())
        )
        for path, created_seq, created_at in rows
    ]


def _settings(reader: Reader, select: str, seq: int | None) -> Mapping[str, tuple[Setting, ...]]:
    rows = driver(reader).execute(
        f"{select} WHERE %(seq)s::bigint IS NULL OR set_seq <= %(seq)s ORDER BY account, from_at, set_seq",
        {"seq": seq},
    )
    found: dict[str, dict[dt.datetime, Setting]] = {}
    for account, since, set_seq, value in rows:
        # Of several for one instant the last that was set counts.
        found.setdefault(account, {})[since] = Setting(since, set_seq, value)
    return {account: tuple(by_time.values()) for account, by_time in found.items()}


def _in_force(settings: tuple[Setting, ...], at: dt.datetime) -> int | str | None:
    return next((one.value for one in reversed(settings) if one.since <= at), None)
