"""From tokens and accounts to the page of the administration: who may ask, how far, and what shares are set. Pure."""

from collections.abc import Mapping, Sequence

from gpuledger.client.outcomes import TokenRow
from gpuledger.client.records import Account
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import instant

COMMANDS = """gpuledger token create NAME --role lead --subtree ACCOUNT
gpuledger token rotate ID --overlap-hours 24
gpuledger token revoke ID"""
"""How tokens are made and ended: on the ledger's own host, so that the first administrator needs nobody's leave."""


def headline(found: Sequence[TokenRow]) -> str:
    """Return the tokens in one sentence."""
    good = sum(one.good for one in found)
    unused = sum(one.good and one.last_used_at is None for one in found)
    said = f"{good:,} of {len(found):,} tokens open the API"
    return f"{said}; {unused:,} of them were never used." if unused else f"{said}."


def tokens(found: Sequence[TokenRow]) -> list[dict[str, str]]:
    """Return tokens as rows of a table: those that are good first, then the newest."""
    ordered = sorted(found, key=lambda one: (one.good, one.created_at), reverse=True)
    return [
        {
            "Name": one.name,
            "Id": one.id,
            "Role": one.role,
            "Reaches": f"{one.subtree or 'every account'} on {', '.join(one.clusters) or 'every cluster'}",
            "Used last": "never" if one.last_used_at is None else instant(one.last_used_at),
            "State": _state(one),
        }
        for one in ordered
    ]


def _state(one: TokenRow) -> str:
    if one.revoked_at is not None:
        return f"revoked {instant(one.revoked_at)} by {one.revoked_by}"
    return f"{'good until' if one.good else 'ended'} {instant(one.expires_at)}"


def accounts(found: Sequence[Account]) -> list[dict[str, str]]:
    """Return accounts as rows of a table, with the share that is in force and how often it was set."""
    return [
        {
            "Account": one.account,
            "Share": "1, not set" if one.share is None else str(one.share),
            "Overdraft": one.overdraft or "not set",
            "Set": f"{len(one.shares)} {'time' if len(one.shares) == 1 else 'times'}",
            "Since": instant(one.created_at),
        }
        for one in found
    ]


def token_rows(found: Sequence[TokenRow]) -> list[Mapping[str, object]]:
    """Return tokens as rows of a download."""
    return [
        {
            "id": one.id, "name": one.name, "role": one.role, "subtree": one.subtree,
            "clusters": " ".join(one.clusters), "created_at": one.created_at, "created_by": one.created_by,
            "expires_at": one.expires_at, "revoked_at": one.revoked_at, "last_used_at": one.last_used_at,
            "good": one.good,
        }
        for one in found
    ]  # fmt: skip


def account_rows(found: Sequence[Account]) -> list[Mapping[str, object]]:
    """Return every share that was ever set as rows of a download; an account without one has a row, too."""
    return [
        {
            "account": one.account, "parent": one.parent, "created_at": one.created_at,
            "share": None if set_ is None else set_.share, "share_from": None if set_ is None else set_.from_,
        }
        for one in found
        for set_ in (one.shares or (None,))
    ]  # fmt: skip


def not_an_admin() -> empty.Why:
    """Return why tokens are not shown."""
    return empty.Why(
        "Who may ask the API is shown to administrators.",
        "Sign in with a token of the role admin; on the ledger's own host the command line shows them, too.",
        "gpuledger token list",
    )


def no_accounts() -> empty.Why:
    """Return why there is no account."""
    return empty.Why(
        "There is no account that you reach.",
        "Accounts come with a budget file, or with the first records of a scheduler.",
        empty.BUDGET_FILE,
    )
