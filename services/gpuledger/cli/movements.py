"""``gpuledger movements``: the rows that explain why a balance differs from what it was."""

from typing import Annotated

import typer

from gpuledger.cli.options import Json, recorded
from gpuledger.cli.output import print_json, print_table


def movements(
    account: Annotated[str, typer.Argument(help="Account path; an inner account shows the leaves below it.")],
    *,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="The cluster; the account's root unless given.")
    ] = None,
    period: Annotated[str | None, typer.Option("--period", help="Booked into this period only.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Recorded after this time; the beginning unless given.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", "--as-of", help="Recorded up to this time; now unless given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List what moved an account's budget between two recorded times: the difference of two ``balance --as-of``.

    Limits on the way up that were changed stand below it: they move no budget, but what may be spent of it.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.accounts import lineage
    from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
    from gpuledger.kernel.clock import iso
    from gpuledger.ledger.movements import limits_moved
    from gpuledger.ledger.movements import movements as read

    cluster = cluster or next(lineage(account))
    from_at, to_at = recorded(since, "--since"), recorded(until, "--until")
    with open_database(settings.load()) as engine, reading(engine) as reader:
        found = read(reader, account, cluster, period=period, since=from_at, until=to_at)
        limits = limits_moved(reader, account, cluster, period=period, since=from_at, until=to_at)
    total = sum(movement.amount for movement in found) // WEIGHT_ONE
    if as_json:
        print_json(
            {
                "account": account,
                "cluster": cluster,
                "movements": [movement.as_json() for movement in found],
                "limits": [limit.as_json() for limit in limits],
                "total_gpu_ms": total,
                "total_gpu_hours": str(gpu_hours(total)),
            }
        )
        return
    rows = [
        (m.seq, iso(m.recorded_at), m.code, m.account, m.period, m.effective_on.isoformat(),
         f"{m.workload}/{m.run}" if m.workload else "-", f"{gpu_hours(m.gpu_ms):+,}")
        for m in found
    ]  # fmt: skip
    columns = [">row", "recorded", "movement", "account", "period", "day", "run", ">GPU-hours"]
    print_table(columns, rows, title=f"{account} on {cluster}: {gpu_hours(total):+,} GPU-hours")
    if limits:
        changed = [
            (m.seq, iso(m.recorded_at), m.account, m.period, f"{gpu_hours(m.gpu_ms):+,}") for m in limits
        ]
        print_table(
            [">row", "recorded", "account", "period", ">GPU-hours"], changed, title="limits that were changed"
        )
