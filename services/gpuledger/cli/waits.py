"""``gpuledger waits``: how long requests waited."""

from typing import Annotated

import typer

from gpuledger.cli.options import AsOf, Cluster, From, Json, To, recorded, window
from gpuledger.cli.output import print_json, print_table


def waits(
    by: Annotated[str, typer.Option("--by", help="size, class, account, day, turn or total.")] = "size",
    cluster: Cluster = None,
    account: Annotated[
        str | None, typer.Option("--account", help="An account and all below it; all unless given.")
    ] = None,
    klass: Annotated[
        str | None, typer.Option("--class", help="allocated or unallocated; both unless given.")
    ] = None,
    *,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print how long requests waited, by the day on which they could first run, as the last roll-up left it.

    Who has not started counts as waiting at least so long. An earlier roll-up is not kept: ``--as-of`` before the last
    one is refused.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import seq_of, vector_of
    from gpuledger.warehouse.waits import WaitsBy, WaitsQuery, WorkClass
    from gpuledger.warehouse.waits import waits as read

    if by not in set(WaitsBy):
        raise Refused(f"--by: {by!r} is not a key", hint=f"one of {', '.join(WaitsBy)}")
    if klass is not None and klass not in set(WorkClass):
        raise Refused(f"--class: {klass!r} is not a class", hint=f"one of {', '.join(WorkClass)}")
    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        if account is not None:
            queries.require_account(reader, account)
        calendar = queries.calendar(reader, config.calendar, known_at)
        from_s, to_s = window(from_, to, calendar)
        inner = queries.inner_accounts(reader, seq_of(vector_of(reader, known_at), ORG_BOOK))
        chosen = WorkClass(klass) if klass else None
        query = WaitsQuery(WaitsBy(by), cluster, account, chosen, from_s, to_s, known_at)
        rows = [row.as_json() for row in read(reader, query, calendar, inner)]
    if as_json:
        print_json({"rows": rows, "by": by, "cluster": cluster, "account": account, "class": klass})
        return
    cells = [
        (row["key"], *(f"{row[name]:,}" for name in ("request_count", "waiting_count", "withdrawn_count")),
         *(_length(row[name]) for name in ("p50_s", "p90_s", "p99_s", "longest_s")))
        for row in rows
    ]  # fmt: skip
    columns = [by, ">requests", ">waiting", ">withdrawn", ">p50", ">p90", ">p99", ">longest"]
    print_table(columns, cells)


def _length(length_s: int | None) -> str:
    return "not known yet" if length_s is None else f"{length_s:,} s"
