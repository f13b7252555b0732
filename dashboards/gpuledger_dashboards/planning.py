"""From the tree of accounts to another split of a node: parts before and after, and the proposal of it. Pure."""

import datetime as dt
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gpuledger.client.plans import Wish
from gpuledger.client.records import Account
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import share

SHARE_UNLESS_SET = 1
"""What counts for an account whose share nobody set."""

SHARE_MAX = 10**9


def splits(accounts: Sequence[Account]) -> dict[str, list[Account]]:
    """Return node -> its children, of every node that has more than one; the roots stand under no name."""
    found: dict[str, list[Account]] = {}
    for one in accounts:
        found.setdefault(one.parent or "", []).append(one)
    return {
        node: sorted(below, key=lambda one: one.account)
        for node, below in sorted(found.items())
        if len(below) > 1
    }


def titles(nodes: Mapping[str, Sequence[Account]]) -> dict[str, str]:
    """Return node -> what the reader sees: the node, and how many it is divided among."""
    return {node: f"{node or 'the organisation'} ({len(below)} accounts)" for node, below in nodes.items()}


def shares_of(children: Sequence[Account]) -> dict[str, int]:
    """Return child -> the share in force."""
    return {one.account: SHARE_UNLESS_SET if one.share is None else one.share for one in children}


def changed(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return child -> its new share, of those whose share is another."""
    return {account: new for account, new in after.items() if new != before[account]}


def table(before: Mapping[str, int], after: Mapping[str, int]) -> list[dict[str, str]]:
    """Return the split before and after as rows of a table: shares, and parts of the node."""
    old, new = sum(before.values()), sum(after.values())
    return [
        {
            "Account": account,
            "Share before": str(before[account]),
            "Share after": str(after[account]),
            "Part of it before": share(before[account], old) if old else "none",
            "Part of it after": share(after[account], new) if new else "none",
        }
        for account in before
    ]


def wish(
    shares: Mapping[str, int],
    reason: str,
    *,
    from_: dt.date | None,
    decide_by: dt.date | None,
    simulation: Mapping[str, Any] | None,
) -> Wish:
    """Return the proposal of new shares; days begin at midnight UTC.

    Args:
        shares: Account -> its new share.
        reason: The case for it.
        from_: The day from which on they hold; from the approval on unless given.
        decide_by: The day by which an answer is due.
        simulation: What a simulation says of it.
    """
    return Wish(
        reason=reason,
        shares=tuple({"account": account, "share": new} for account, new in shares.items()),
        effective_at=_midnight(from_),
        decide_by=_midnight(decide_by),
        simulation=None if simulation is None else dict(simulation),
    )


def command(shares: Mapping[str, int], reason: str) -> str:
    """Return the command that proposes the same from a terminal."""
    asked = [word for account, new in shares.items() for word in ("--share", f"{account}={new}")]
    return shlex.join(("gpuledger", "proposal", "make", *asked, "--reason", reason or "why"))


def nothing_to_divide() -> empty.Why:
    """Return why there is no split to change."""
    return empty.Why(
        "There is no account here that is divided among others that you see.",
        "Accounts and shares come from a budget file.",
        empty.BUDGET_FILE,
    )


def _midnight(day: dt.date | None) -> str | None:
    return None if day is None else f"{day.isoformat()}T00:00:00Z"
