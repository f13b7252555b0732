"""``gpuledger usage``, ``balance``, ``layers``: the reading commands."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

import typer

from gpuledger.cli.options import AsOf, Cluster, From, Json, To, recorded, window
from gpuledger.cli.output import print_json, print_table


def usage(
    by: Annotated[
        str,
        typer.Option("--by", help="account, month, day, user, class, cluster, host, model or label:NAME."),
    ] = "account",
    cluster: Cluster = None,
    account: Annotated[
        str | None, typer.Option("--account", help="An account and all below it; all unless given.")
    ] = None,
    *,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print GPU-time used: physical, both classes, open runs up to now."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.usage import UsageQuery, key_of
    from gpuledger.ledger.usage import usage as read_usage

    key = key_of(by)
    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        if account is not None:
            queries.require_account(reader, account)
        calendar = queries.calendar(reader, config.calendar, known_at)
        from_s, to_s = window(from_, to, calendar)
        query = UsageQuery(
            by=key,
            cluster=cluster,
            account=account,
            from_s=from_s,
            to_s=to_s,
            as_of=known_at,
        )
        report = read_usage(reader, query, seconds(SystemClock().now()), config.calendar)
    if as_json:
        print_json(report.as_json())
        return
    rows = [
        (row.key, f"{gpu_hours(row.gpu_ms):,}", "-" if row.used_gpu_ms is None else f"{gpu_hours(row.used_gpu_ms):,}",
         "-" if row.coverage is None else f"{row.coverage:.1%}")
        for row in report.rows
    ]  # fmt: skip
    print_table([by, ">GPU-hours", ">used (gpu_util)", ">coverage"], rows)
    print(f"total {gpu_hours(report.total_gpu_ms):,} GPU-hours, as of {report.as_of:%Y-%m-%dT%H:%M:%SZ}")
    if report.provisional_gpu_ms:
        print(f"besides, {gpu_hours(report.provisional_gpu_ms):,} GPU-hours so far of runs that still go on")


def balance(
    account: Annotated[str, typer.Argument(help="Account path, such as philly/ee9e8c.")],
    *,
    cluster: Cluster = None,
    period: Annotated[
        str | None, typer.Option("--period", help="Budget period, such as 2017-10; the newest unless given.")
    ] = None,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    as_known: Annotated[
        bool,
        typer.Option(
            "--as-known", help="By the period that movements belong to, however late they were booked."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print what an account was granted, has used, holds and has left.

    Of the periods that touch the window, the newest is shown: as booked into it, which a close has sealed,
    unless it is asked for as known.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.balances import BalanceQuery
    from gpuledger.ledger.balances import balance as read_balance

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        calendar = queries.calendar(reader, config.calendar, known_at)
        from_s, to_s = window(from_, to, calendar)
        query = BalanceQuery(
            cluster=cluster,
            period=period,
            from_s=from_s,
            to_s=to_s,
            as_of=known_at,
            as_known=as_known,
        )
        found = read_balance(reader, account, query, seconds(SystemClock().now()), config.calendar)
    if as_json:
        print_json({**found.as_json(), "basis": "as_known" if as_known else "as_sealed"})
        return
    names = ("granted", "transferred", "charged", "held", "credited", "expired", "available", "unallocated")
    rows = [(name, f"{gpu_hours(getattr(found, name + '_gpu_ms')):,}") for name in names]
    print_table(
        ["", ">GPU-hours"],
        rows,
        title=f"{found.account} on {found.cluster}, {found.period}{', as known' * as_known}",
    )
    if found.available_gpu_ms != found.own_available_gpu_ms:
        own = gpu_hours(found.own_available_gpu_ms)
        print(f"{own:,} GPU-hours are left of its own; the limit of {found.binding_account} binds")


def layers(
    by: Annotated[str, typer.Option("--by", help="cluster, day, month, hour or total.")] = "cluster",
    cluster: Cluster = None,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print availability, occupancy, impact and utilisation, as the last roll-up left them.

    An earlier roll-up is not kept: ``--as-of`` before the last one is refused.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import seq_of, vector_of
    from gpuledger.ledger.targets import targets
    from gpuledger.warehouse.reads import LayersBy, LayersQuery
    from gpuledger.warehouse.reads import layers as read_layers

    if by not in set(LayersBy):
        raise Refused(f"--by: {by!r} is not a key", hint=f"one of {', '.join(LayersBy)}")

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        calendar = queries.calendar(reader, config.calendar, known_at)
        from_s, to_s = window(from_, to, calendar)
        query = LayersQuery(
            by=LayersBy(by),
            cluster=cluster,
            from_s=from_s,
            to_s=to_s,
            as_of=known_at,
        )
        rows = [row.as_json() for row in read_layers(reader, query, calendar)]
        org_seq = seq_of(vector_of(reader, known_at), ORG_BOOK)
        at_s = seconds(known_at or SystemClock().now())
        hoped = targets(reader, cluster, at_s, org_seq=org_seq)
    if as_json:
        print_json({"rows": rows, "targets": hoped})
        return
    print_layers(rows)
    if wanted := [f"{layer} {Decimal(value):.1%}" for layer, value in hoped.items() if value is not None]:
        print(f"targets: {', '.join(wanted)}")


def print_layers(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the four layers as a table; what is missing says why."""

    def percent(value: object) -> str:
        return "-" if value is None else f"{float(str(value)):.2%}"

    cells = []
    for row in rows:
        impact, used = row["impact"], row["utilisation"]
        cells.append(
            (row["key"], percent(row["availability"]), percent(row["occupancy"]), percent(impact["window"]),
             percent(used["value"]), percent(used["coverage"]), row.get("reason") or "")
        )  # fmt: skip
    columns = [
        "",
        ">availability",
        ">occupancy",
        ">impact (window)",
        ">utilisation (gpu_util)",
        ">coverage",
        "why empty",
    ]
    print_table(columns, cells)
