"""``gpuledger inventory``: what is installed."""

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.applying import apply_file
from gpuledger.cli.options import From, Json, Yes

app = typer.Typer(help="Installed hosts and GPUs.", no_args_is_help=True)


@app.command("apply")
def apply(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="An inventory file (YAML); see docs/inventory-file.md.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Yes = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Apply an inventory file: the hosts of each cluster it names; hosts that it leaves out are retired."""
    from gpuledger.ingest import inventory

    apply_file(
        path,
        inventory.read,
        lambda reader, file, at_s, _calendar: inventory.plan(reader, file, at_s),
        inventory.SOURCE,
        from_=from_,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
