"""``gpuledger waste``: charged time that was measured and not used."""

from typing import Annotated

import typer

from gpuledger.cli.options import AsOf, Cluster, Json, recorded
from gpuledger.cli.output import print_json, print_table


def waste(
    by: Annotated[str, typer.Option("--by", help="account, user, day or total.")] = "account",
    cluster: Cluster = None,
    account: Annotated[
        str | None, typer.Option("--account", help="An account and all below it; all unless given.")
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", help="Such as 2017-10; the newest unless given.")
    ] = None,
    *,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print what of charged time was measured idle, squatted and little used, as the last roll-up left it.

    What was not measured is in none of them. An earlier roll-up is not kept: ``--as-of`` before the last one is
    refused.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import seq_of, vector_of
    from gpuledger.warehouse.waste import WasteBy, WasteQuery, report

    if by not in set(WasteBy):
        raise Refused(f"--by: {by!r} is not a key", hint=f"one of {', '.join(WasteBy)}")
    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        if account is not None:
            queries.require_account(reader, account)
        inner = queries.inner_accounts(reader, seq_of(vector_of(reader, known_at), ORG_BOOK))
        found = report(reader, WasteQuery(WasteBy(by), cluster, account, period, known_at), inner)
    rows = [row.as_json() for row in found.rows]
    if as_json:
        head = {"by": by, "cluster": cluster, "account": account, "period": found.period}
        print_json({"rows": rows, **head, "periods": found.periods})
        return
    names = ("allocated_gpu_ms", "sampled_gpu_ms", "idle_gpu_ms", "squatted_gpu_ms", "low_gpu_ms")
    cells = [
        (row["key"], *(_hours(row[name]) for name in names), row["squatted_of_budget"] or "-") for row in rows
    ]
    columns = [by, ">charged GPU-h", ">measured", ">idle", ">squatted", ">little used", ">squatted of budget"]
    print_table(columns, cells, title=f"{found.period or 'nothing is rolled up'}")


def _hours(gpu_ms: int) -> str:
    from gpuledger.kernel.amounts import gpu_hours

    return f"{gpu_hours(gpu_ms):,}"
