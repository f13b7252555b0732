"""``gpuledger tick``."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import Cluster, Json, moment_or_now
from gpuledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from gpuledger.database.engine import Writer
    from gpuledger.ledger.ticking import Ticked


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
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, instant, iso
    from gpuledger.ledger import periods, queries, ticking
    from gpuledger.ledger.attempts import booked

    config, clock = settings.load(), SystemClock()
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            names = queries.clusters(reader) if cluster is None else [cluster]
            calendar = queries.calendar(reader, config.calendar)
        at_s = moment_or_now(at, "--at", calendar)

        def move(writer: "Writer", name: str) -> "Ticked":
            ticked = ticking.tick(writer, name, at_s, clock=clock, calendar=calendar)
            periods.open_periods(writer, name, clock=clock, calendar=calendar)
            return ticked

        done = [booked(engine, name, partial(move, name=name)) for name in names]
    rows = [
        (
            t.cluster,
            iso(instant(t.ticked_s)),
            t.lost_ends,
            t.revised_credits,
            t.sealed_hours,
            t.put_aside,
            t.repeated,
        )
        for t in done
    ]
    if as_json:
        keys = (
            "cluster",
            "ticked_at",
            "lost_ends",
            "revised_credits",
            "sealed_hours",
            "put_aside",
            "repeated",
        )
        print_json({"clusters": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    shown = [(*row, "stood there before" if repeated else "") for *row, repeated in rows]
    columns = ["cluster", "clock at", ">lost ends", ">credits revised", ">hours sealed", ">put aside", ""]
    print_table(columns, shown)
