"""The tree of accounts, with what was set for each and from when on."""

from typing import Any

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from gpuledger.api import paging, parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Answer, AsOf
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Right
from gpuledger.ledger import queries
from gpuledger.ledger.account_history import account_history


class _Since(Answer):
    model_config = ConfigDict(extra="allow", populate_by_name=True)

    from_: str = Field(alias="from", description="From when on it holds, until the next one.")
    seq: int = Field(description="The row of `~org` that set it.")


class ShareSince(_Since):
    """A share that was set."""

    share: int


class OverdraftSince(_Since):
    """What happens when the budget is spent, as it was set."""

    overdraft: str = Field(description="soft or hard")


class AccountAnswer(Answer):
    """An account, and what was ever set for it."""

    account: str
    parent: str | None
    is_leaf: bool
    created_seq: int
    created_at: str
    share: int | None = Field(description="In force now; null where none was set, which counts as 1.")
    overdraft: str | None = Field(description="In force now; null where none was set, which is soft.")
    shares: list[ShareSince]
    overdrafts: list[OverdraftSince]


class Accounts(Answer):
    """The tree of accounts, by path."""

    accounts: list[AccountAnswer]
    next: int | None = Field(description="`after` of the next page; null on the last.")
    as_of: str = AsOf


def router(context: Context) -> APIRouter:
    """Return the path, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/accounts",
        operation_id="listAccounts",
        summary="The tree of accounts, with shares and overdrafts by date",
        response_model=Accounts,
        **needs(Right.READ_ACCOUNTS),
    )
    def list_accounts(
        caller: Asking,
        account: parameters.Account = None,
        as_of: parameters.AsOf = None,
        limit: paging.Limit = paging.PAGE_MAX,
        after: paging.After = 0,
    ) -> dict[str, Any]:
        """List accounts in the order of their paths; `account` keeps it and what is below it."""
        within = caller.account(account)
        with reading(context.engine) as reader:
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            found = account_history(reader, believed)
        kept = [row for row in found if Scope(within).holds(row.account)]
        rows, following = paging.page(kept, after, limit)
        at_s = context.now_or(believed)
        return {
            "accounts": [row.as_json(at_s) for row in rows],
            "next": following,
            "as_of": context.as_of(believed),
        }

    return routes
