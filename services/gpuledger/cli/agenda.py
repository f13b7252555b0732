"""``gpuledger calendar``: what is to come on a cluster."""

from typing import Annotated

import typer

from gpuledger.cli.options import AnyCluster, AsOf, Json, moment_or_now, one_cluster, recorded
from gpuledger.cli.output import print_json


def calendar(
    *,
    cluster: AnyCluster = None,
    at: Annotated[str | None, typer.Option("--at", help="From this instant on; now unless given.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List what is to come, in order of time: ends of protection, reservations, drains, budgets, periods."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries
    from gpuledger.policy.upcoming import upcoming

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        days = queries.calendar(reader, config.calendar, known_at)
        at_s = moment_or_now(at, "--at", days, known_at)
        where = one_cluster(cluster, queries.clusters(reader))
        found = upcoming(reader, where, at_s=at_s, calendar=days, as_of=known_at)
    if as_json:
        print_json(found.as_json())
        return
    for line in found.lines():
        print(line)
