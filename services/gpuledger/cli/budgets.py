"""``gpuledger budget``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.applying import apply_file
from gpuledger.cli.asking import who
from gpuledger.cli.options import From, Json, Yes
from gpuledger.cli.output import note

if TYPE_CHECKING:
    from gpuledger.database.engine import Reader
    from gpuledger.ingest.changes import Change
    from gpuledger.kernel.calendar import Calendar

app = typer.Typer(help="Accounts, shares, grants and installed capacity.", no_args_is_help=True)


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
