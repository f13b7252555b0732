"""``gpuledger tick``."""

from typing import Annotated

import typer

from gpuledger.cli.options import Cluster, Json, moment_or_now
from gpuledger.cli.output import print_json, print_table


def tick(
    cluster: Cluster = None,
    at: Annotated[
        str | None,
        typer.Option("--at", help="The instant to move to, floored to the hour; the present unless given."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Move the books' clocks to the last full hour: close runs whose end was lost, seal telemetry, charge open runs.

    The ingest worker does the same by itself every hour.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading, writing
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, instant, iso
    from gpuledger.ledger import periods, queries, ticking

    config, clock, done = settings.load(), SystemClock(), []
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            names = queries.clusters(reader) if cluster is None else [cluster]
            calendar = queries.calendar(reader, config.calendar)
        at_s = moment_or_now(at, "--at", calendar)
        for name in names:
            with writing(engine) as writer:
                done.append(ticking.tick(writer, name, at_s, clock=clock, calendar=calendar))
                periods.open_periods(writer, name, clock=clock, calendar=calendar)
    rows = [
        (t.cluster, iso(instant(t.ticked_s)), t.lost_ends, t.revised_credits, t.sealed_hours, t.repeated)
        for t in done
    ]
    if as_json:
        keys = ("cluster", "ticked_at", "lost_ends", "revised_credits", "sealed_hours", "repeated")
        print_json({"clusters": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    shown = [(*row, "stood there before" if repeated else "") for *row, repeated in rows]
    print_table(["cluster", "clock at", ">lost ends", ">credits revised", ">hours sealed", ""], shown)
