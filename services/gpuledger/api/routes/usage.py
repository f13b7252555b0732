"""GPU-time used."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from gpuledger.api import parameters
from gpuledger.api.access import Asking, needs
from gpuledger.api.answers import Usage
from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.identity.caller import Caller
from gpuledger.identity.roles import Right
from gpuledger.ledger import queries
from gpuledger.ledger.usage import LABEL, By, ByLabel, Key, UsageQuery, key_of, usage

UsageBy = Annotated[
    str,
    Query(
        description="What the rows are keyed by: a key, or the values of a label, as `label:NAME`.",
        pattern=f"^({'|'.join(By)}|{LABEL}.+)$",
        max_length=1024,
    ),
]


def asked_key(caller: Caller, by: str) -> Key:
    """Return what rows are keyed by.

    Raises:
        Forbidden: The caller may not see whose work it is; labels are whatever people wrote, so one may name a person.
    """
    key = key_of(by)
    if key is By.USER or isinstance(key, ByLabel):
        caller.require(Right.READ_WORK)
    return key


def router(context: Context) -> APIRouter:
    """Return the paths, reading through the context's database."""
    routes = APIRouter(prefix="/v1", tags=["ledger"])

    @routes.get(
        "/usage",
        operation_id="getUsage",
        summary="GPU-time used",
        response_model=Usage,
        **needs(Right.READ_ACCOUNTS),
    )
    def get_usage(
        caller: Asking,
        by: UsageBy = By.ACCOUNT,
        cluster: parameters.Cluster = None,
        account: parameters.Account = None,
        from_: parameters.From = None,
        to: parameters.To = None,
        as_of: parameters.AsOf = None,
    ) -> dict[str, Any]:
        """Return physical GPU-time of both classes, up to the earliest of `to`, `as_of` and now."""
        key = asked_key(caller, by)
        cluster, within = caller.cluster(cluster), caller.account(account)
        with reading(context.engine) as reader:
            queries.require_cluster(reader, cluster)
            if account is not None:
                queries.require_account(reader, account)
            believed = context.believed(reader, as_of)
            calendar = queries.calendar(reader, context.default_calendar, believed)
            from_s, to_s = parameters.window_of(from_, to, calendar)
            query = UsageQuery(key, cluster, within, from_s=from_s, to_s=to_s, as_of=believed)
            return usage(reader, query, context.now_s(), context.default_calendar).as_json()

    return routes
