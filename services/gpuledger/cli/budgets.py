"""``gpuledger budget``."""

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import From, Json, moment
from gpuledger.cli.output import note, print_json

app = typer.Typer(help="Accounts, shares, grants and installed capacity.", no_args_is_help=True)


@app.command("apply")
def apply(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A budget file (YAML); see docs/budget-file.md.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Apply a budget file: shows the difference first; nothing changes when there is none."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import budget_file, budgets
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.kernel.errors import NotFound, Refused

    try:
        file = budget_file.read(path)
    except NotFound as error:  # a missing file is bad usage, not a missing account
        raise Refused(error.message, hint=error.hint) from error
    config, clock = settings.load(), SystemClock()
    with open_database(config) as engine:
        at_s = moment(from_, "--from", config.calendar)
        at_s = seconds(clock.now()) if at_s is None else at_s
        with reading(engine) as reader:
            changes = budgets.plan(reader, file, at_s, who(), config.calendar)
        for change in changes:
            note(change.shown)
        applied, opened = False, {}
        if not dry_run and agreed(len(changes), yes=yes):
            opened = budgets.apply(Intake(engine, clock, config.calendar), changes, at_s)
            applied = True
    for cluster, periods in opened.items():
        note(f"{cluster}: opened {', '.join(periods)}")
    if as_json:
        document = {"changes": [c.shown for c in changes], "applied": applied, "opened": opened}
        print_json(document)
    elif not changes:
        print("nothing to change")
    else:
        print(f"{len(changes)} changes {'applied' if applied else 'not applied'}")
