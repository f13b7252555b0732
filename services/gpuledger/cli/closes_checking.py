"""``gpuledger close verify`` and ``close diff``: whether a sealed close still holds, and why two versions differ."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.closes import Period, closer_of
from gpuledger.cli.options import Json, OneCluster
from gpuledger.cli.output import note, print_json, print_table
from gpuledger.kernel.exits import PROBLEMS

if TYPE_CHECKING:
    from gpuledger.close.explaining import Explanation
    from gpuledger.close.verifying import Verification

SHOWN_MAX = 50

Version = Annotated[int | None, typer.Option("--version", min=1, help="The newest unless given.")]


def verify(period: Period, cluster: OneCluster, *, version: Version = None, as_json: Json = False) -> None:
    """Make a sealed close anew from the journal and compare bytes; status 3, and what differs, when it is another."""
    from gpuledger import settings
    from gpuledger.close.verifying import verify as check
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries

    config = settings.load()
    with open_database(config) as engine:
        with reading(engine) as reader:
            queries.require_cluster(reader, cluster)
        found = check(closer_of(engine, config, cluster, period), version)
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)
    if not found.ok:
        raise typer.Exit(PROBLEMS)


def diff(
    period: Period,
    cluster: OneCluster,
    *,
    from_: Annotated[
        int | None,
        typer.Option("--from", min=1, help="The earlier version; the one before --to unless given."),
    ] = None,
    to: Annotated[
        int | None, typer.Option("--to", min=1, help="The later version; the newest unless given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what two versions of a close say otherwise, and the journal rows in between that explain it."""
    from gpuledger import settings
    from gpuledger.close.explaining import explain
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries
    from gpuledger.ledger.close_rows import close_of

    with open_database(settings.load()) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        after = close_of(reader, cluster, period, to).version
        found = explain(reader, cluster, period, after - 1 if from_ is None else from_, after)
    if as_json:
        print_json(found.as_json())
    else:
        _show_difference(found)
    if not found.is_explained:
        raise typer.Exit(PROBLEMS)


def _show(found: "Verification") -> None:
    place = found.place
    said = "is what was sealed" if found.ok else "is not what was sealed"
    print(f"version {place.version} of the close of {place.period} of {place.cluster} {said}: {found.digest}")
    if found.rebuilt not in (None, found.digest):
        print(f"  the journal gives {found.rebuilt}")
    for finding in found.findings:
        print(f"  {finding.told()}")


def _show_difference(found: "Explanation") -> None:
    from gpuledger.kernel.clock import iso

    print(f"{found.period} of {found.cluster}, version {found.before} to {found.after}: GPU-hours")
    changed = [
        (
            c.account,
            _name(c.column),
            *(_hours(c.column, amount) for amount in (c.before, c.after, c.difference)),
        )
        for c in found.changes
    ]
    print_table(["account", "amount", ">before", ">after", ">difference"], changed)
    rows = [
        (m.seq, iso(m.recorded_at), iso(m.effective_at), m.type, m.workload or "", account, _name(column),
         _hours(column, amount))
        for m, amounts in ((row.moved, row.amounts) for row in found.rows[:SHOWN_MAX])
        for (account, column), amount in amounts.items()
    ]  # fmt: skip
    print_table([">row", "recorded", "effective", "type", "workload", "account", "amount", ">moved"], rows)
    if len(found.rows) > SHOWN_MAX:
        note(f"  ... and {len(found.rows) - SHOWN_MAX} more rows; --json shows all")
    print(
        "the rows in between sum to the difference" if found.is_explained
        else "the rows in between do NOT sum to the difference: gpuledger close verify says what was changed"
    )  # fmt: skip


def _name(column: str) -> str:
    """Return an amount's name for people; physical time is told apart."""
    name = column.removesuffix("_gpu_ms_weighted")
    return name if name != column else column.removesuffix("_gpu_ms") + " (physical)"


def _hours(column: str, amount: int) -> str:
    from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours

    whole = amount if column.endswith("_gpu_ms") else amount // WEIGHT_ONE
    return f"{gpu_hours(whole):,}"
