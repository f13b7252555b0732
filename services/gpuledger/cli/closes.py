"""``gpuledger close``: close a budget period, or open a closed one again."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import Json, OneCluster, Yes
from gpuledger.cli.output import note, print_json

if TYPE_CHECKING:
    from gpuledger.database.engine import Writer
    from gpuledger.ledger.closing import Close

app = typer.Typer(help="Closing budget periods.", no_args_is_help=True)

Period = Annotated[str, typer.Argument(help="Budget period, such as 2026-12.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and stop.")]


@app.command("run")
def run(
    period: Period, cluster: OneCluster, *, dry_run: DryRun = False, yes: Yes = False, as_json: Json = False
) -> None:
    """Close a period that is over: charge open runs up to its end, let lots expire or go on, take no more bookings."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import closing, queries
    from gpuledger.ledger.attempts import booked
    from gpuledger.ledger.periods import open_periods

    config, clock = settings.load(), SystemClock()
    document: dict[str, object] = {"cluster": cluster, "period": period, "applied": False}
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            calendar = queries.calendar(reader, config.calendar)
            closing.check_closing(reader, cluster, period, now_s=seconds(clock.now()), calendar=calendar)
        note(f"~ close    {cluster} {period}")
        if not dry_run and agreed(1, yes=yes):

            def close(writer: "Writer") -> "Close":
                closed = closing.close_period(writer, cluster, period, who(), clock=clock, calendar=calendar)
                open_periods(writer, cluster, clock=clock, calendar=calendar)
                return closed

            found = booked(engine, cluster, close, people=[who()])
            document |= {**found._asdict(), "applied": True}
    if as_json:
        print_json(document)
    elif document["applied"]:
        again = ", closed before" if document["repeated"] else ""
        print(
            f"{period} of {cluster} is closed: version {document['version']}, row {document['closed_seq']}{again}"
        )
    else:
        print("1 change not applied")


@app.command("reopen")
def reopen(
    period: Period,
    cluster: OneCluster,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the order.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let a closed period take bookings again; what its close expired and carried over is taken back."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import closing, queries
    from gpuledger.ledger.attempts import booked

    config = settings.load()
    document: dict[str, object] = {"cluster": cluster, "period": period, "applied": False}
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
            calendar = queries.calendar(reader, config.calendar)
            closing.check_reopening(reader, cluster, period, reason)
        note(f"~ reopen   {cluster} {period}")
        if not dry_run and agreed(1, yes=yes):
            version = booked(
                engine,
                cluster,
                lambda writer: closing.reopen_period(
                    writer, cluster, period, who(), reason, clock=SystemClock(), calendar=calendar
                ),
                people=[who()],
            )
            document |= {"version": version, "applied": True}
    if as_json:
        print_json(document)
    elif document["applied"]:
        print(
            f"{period} of {cluster} is open again: version {document['version']} of its close no longer holds"
        )
    else:
        print("1 change not applied")
