"""The condition on rows of the warehouse that their account lies in a subtree."""

from typing import Any

import sqlalchemy as sa

from gpuledger.kernel.accounts import SEPARATOR, owner_of


def is_below(column: sa.ColumnElement[Any], account: str) -> sa.ColumnElement[bool]:
    """Return the condition that an account is the one asked for or lies below it.

    What an inner account owns itself stands under its own name: of its ``~own`` child that alone is meant.
    """
    owner = owner_of(account)
    if owner != account:
        return column == owner
    return sa.or_(column == account, sa.func.starts_with(column, account + SEPARATOR))
