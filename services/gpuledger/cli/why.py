"""``gpuledger why``: a workload's story, and why it waits."""

from typing import Annotated

import typer

from gpuledger.cli.options import AsOf, Json, moment_or_now, recorded
from gpuledger.cli.output import print_json


def why(
    workload: Annotated[str, typer.Argument(help="The workload's id, as its source writes it.")],
    *,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="The cluster; needed where several know the workload.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="Tell it as it stood at this instant; now unless given.")
    ] = None,
    as_of: AsOf = None,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if", help="Look for what would let it start now; runs cycles, so it takes longer."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell what happened to a workload and why, what it cost, and while it waits, what for."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries
    from gpuledger.policy.telling import lines_of
    from gpuledger.policy.why import why as ask

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        calendar = queries.calendar(reader, config.calendar, known_at)
        at_s = moment_or_now(at, "--at", calendar, known_at)
        answer = ask(
            reader, workload, cluster=cluster, at_s=at_s, as_of=known_at, what_if=what_if
        )  # fmt: skip
    if as_json:
        print_json(answer.as_json())
        return
    for line in lines_of(answer, what_if=what_if):
        print(line)
