"""``gpuledger budget``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.applying import apply_file
from gpuledger.cli.asking import who
from gpuledger.cli.options import AsOf, Cluster, From, Json, Yes, recorded
from gpuledger.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from gpuledger.database.engine import Reader
    from gpuledger.ingest.changes import Change
    from gpuledger.kernel.calendar import Calendar

app = typer.Typer(help="Accounts, shares, grants and installed capacity.", no_args_is_help=True)

CAUSES = ("transfer", "expiry", "capacity", "demand", "scheduler", "credit")
"""Why a budget and what was delivered of it differ."""


@app.command("apply")
def apply(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A budget file (YAML); see docs/budget-file.md.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Yes = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Apply a budget file: shows the difference first; nothing changes when there is none."""
    from gpuledger.ingest import budget_file, budgets

    def plan(
        reader: "Reader", file: budget_file.BudgetFile, at_s: int, calendar: "Calendar"
    ) -> "list[Change]":
        changes = budgets.plan(reader, file, at_s, who(), calendar)
        for sentence in budgets.divided_before(reader, file, changes, at_s, calendar):
            note(sentence)
        return changes

    apply_file(
        path,
        budget_file.read,
        plan,
        budgets.SOURCE,
        from_=from_,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )


@app.command("report")
def report(
    period: Annotated[
        str | None, typer.Option("--period", help="Budget period, such as 2017-10; the newest unless given.")
    ] = None,
    cluster: Cluster = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print budget versus actual of a period by account, as the last roll-up left it, with the variance by cause.

    An earlier roll-up is not kept: ``--as-of`` before the last one is refused.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.kernel.clock import instant, iso
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import seq_of, vector_of
    from gpuledger.warehouse import budgets, reads

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        reads.require_state_of(reader, cluster, known_at)
        calendar = queries.calendar(reader, config.calendar, known_at)
        bounds = calendar.period_bounds_s(period) if period is not None else None
        inner = queries.inner_accounts(reader, seq_of(vector_of(reader, known_at), ORG_BOOK))
        found = budgets.report(reader, cluster, period, inner)
        seen = reads.as_of(reader, cluster)
    if not as_json:
        print_report(found.period, found.rows)
        return
    if bounds is None and found.period is not None:
        bounds = calendar.period_bounds_s(found.period)
    print_json(
        {
            "rows": found.rows,
            "cluster": cluster,
            "period": found.period,
            "periods": found.periods,
            "from": iso(instant(bounds[0])) if bounds else None,
            "to": iso(instant(bounds[1])) if bounds else None,
            "timezone": calendar.timezone,
            "reading": "as_known",
            "as_of": None if seen is None else iso(seen),
        }
    )


def print_report(period: str | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each account in GPU-hours; budget less delivered is the sum of the causes."""
    names = ("budget", "owed", "delivered", "available")
    cells = [
        (row["account"], row["cluster"], *(hours(row[f"{name}_gpu_ms"]) for name in names),
         *(hours(row[f"variance_{cause}_gpu_ms"]) for cause in CAUSES), row["reason"] or "")
        for row in rows
    ]  # fmt: skip
    columns = ["account", "cluster", *(f">{name}" for name in (*names, *CAUSES)), "why empty"]
    print_table(columns, cells, title=f"Budget versus actual, {period}, GPU-hours" if period else "")
    if period is None:
        print("nothing has been rolled up; gpuledger rollup fills the warehouse")
        return
    print_forecast(period, rows)


def print_forecast(period: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what each account will have been delivered by the end of the period, and whether its budget will do."""
    if not any(row["forecast"]["gpu_ms"] is not None for row in rows):
        for reason in dict.fromkeys(row["forecast"]["reason"] for row in rows):
            print(f"no forecast: {reason}")
        return
    cells = [
        (row["account"], row["cluster"], hours(row["budget_gpu_ms"]), hours(row["delivered_gpu_ms"]),
         *(hours(row["forecast"][name]) for name in ("gpu_ms", "low_gpu_ms", "high_gpu_ms")),
         row["forecast"]["overrun"] or "-", row["forecast"]["reason"] or "")
        for row in rows
    ]  # fmt: skip
    columns = [
        "account", "cluster", ">budget", ">delivered", ">forecast", ">low", ">high", "overrun", "why empty",
    ]  # fmt: skip
    band = rows[0]["forecast"]["band_percent"]
    print_table(
        columns, cells, title=f"Forecast to the end of {period}, GPU-hours; low to high holds {band} %"
    )


def hours(value: int | None) -> str:
    """Return an amount as people read it; a dash where it is not known."""
    from gpuledger.kernel.amounts import people_gpu_hours

    return "-" if value is None else people_gpu_hours(value)
