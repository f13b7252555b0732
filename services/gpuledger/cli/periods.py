"""``gpuledger period``: the budget periods of clusters."""

from typing import Annotated

import typer

from gpuledger.cli.asking import agreed
from gpuledger.cli.options import AsOf, Cluster, Json, OneCluster, Yes, recorded
from gpuledger.cli.output import note, print_json, print_table

app = typer.Typer(help="Budget periods.", no_args_is_help=True)


@app.command("list")
def list_(cluster: Cluster = None, as_of: AsOf = None, as_json: Json = False) -> None:
    """List the periods that were opened or have movements."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import people_gpu_hours
    from gpuledger.ledger import periods, queries

    known_at = recorded(as_of)
    with open_database(settings.load()) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        found = periods.periods(reader, cluster, known_at)
    if as_json:
        print_json({"periods": [p.as_json() for p in found]})
        return
    shown = [
        (p.cluster, p.period, p.state, "-" if p.installed_gpu_ms is None else people_gpu_hours(p.installed_gpu_ms),
         people_gpu_hours(p.granted_gpu_ms))
        for p in found
    ]  # fmt: skip
    print_table(["cluster", "period", "state", ">installed GPU-h", ">granted GPU-h"], shown)


@app.command("open")
def open_(
    period: Annotated[str, typer.Argument(help="Budget period, such as 2026-12.")],
    cluster: OneCluster,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the grants and stop.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Open a period before anything moves in it: leaves without an explicit grant get their share."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import periods, queries
    from gpuledger.ledger.attempts import booked

    config, applied = settings.load(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            periods.check_opening(reader, cluster, period)
            calendar = queries.calendar(reader, config.calendar)
            fact = periods.opening(reader, cluster, period, calendar)
        for grant in fact.grants:
            note(f"+ grant    {grant.account}  {cluster} {period}  {gpu_hours(grant.gpu_ms):,} GPU-hours")
        if not dry_run and agreed(1, yes=yes):
            clock = SystemClock()
            fact = booked(
                engine,
                cluster,
                lambda writer: periods.open_period(writer, cluster, period, clock=clock, calendar=calendar),
            )
            applied = True
    if as_json:
        grants = [
            {"account": g.account, "gpu_ms": g.gpu_ms, "gpu_hours": str(gpu_hours(g.gpu_ms))}
            for g in fact.grants
        ]
        document = {"cluster": cluster, "period": period, "installed_gpu_ms": fact.installed_gpu_ms}
        print_json({**document, "grants": grants, "applied": applied})
    else:
        print(f"{period} of {cluster} {'opened' if applied else 'not opened'}: {len(fact.grants)} grants")
