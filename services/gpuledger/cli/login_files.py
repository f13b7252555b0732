"""``gpuledger login-files``: what login nodes and portals show, kept in files by a timer."""

from pathlib import Path
from typing import Annotated

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import print_json


def login_files(
    to: Annotated[Path, typer.Option("--to", help="The folder to write to, such as /var/lib/gpuledger.")],
    *,
    days: Annotated[
        int,
        typer.Option(
            "--days", min=1, max=3660, help="Who used an account within so many days is told its balance."
        ),
    ] = 90,
    members: Annotated[
        Path | None, typer.Option("--members", help="A CSV file of more people: person,account.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask the ledger API for balances, and write them by person: for gbalance --login, and for Open OnDemand.

    Run it by a timer where the database is, which alone knows the names of people. The token needs to read every
    account and who used it: role auditor.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger.identity import names_of
    from gpuledger.login.asking import open_client
    from gpuledger.login.gathering import write_files

    with open_database(settings.load()) as engine, reading(engine) as reader, open_client() as client:
        written = write_files(
            client,
            to,
            lambda tokens: {str(token): name for token, name in names_of(reader, tokens).items()},
            days=days,
            members=members,
            now=SystemClock().now(),
        )
    if as_json:
        print_json({"files": [str(path) for path in written]})
        return
    for path in written:
        print(path)
