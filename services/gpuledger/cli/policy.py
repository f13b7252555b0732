"""``gpuledger cycle`` and ``replay``."""

from typing import Annotated, Any

import typer

from gpuledger.cli.failure import PROBLEMS
from gpuledger.cli.options import Cluster, Json, moment_or_now
from gpuledger.cli.output import print_json, print_table

SHOWN_MAX = 10


def cycle(
    cluster: Cluster = None,
    at: Annotated[
        str | None, typer.Option("--at", help="The instant to decide for; now unless given.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, but record and publish nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the policy once: fair-share order, GPUs issued, decisions with reasons; recorded and published."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.relay import relay
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries
    from gpuledger.policy.service import issue_cycle
    from gpuledger.streams.opening import open_broker

    config, clock = settings.load(), SystemClock()
    with open_database(config) as engine:
        with reading(engine) as reader:
            known = queries.clusters(reader)
            calendar = queries.calendar(reader, config.calendar)
        if cluster is None:
            if len(known) != 1:
                raise Refused("--cluster: name one", hint=f"known clusters: {', '.join(known) or 'none yet'}")
            cluster = known[0]
        at_s = moment_or_now(at, "--at", calendar)
        record = issue_cycle(engine, cluster, at_s=at_s, clock=clock, calendar=calendar, dry_run=dry_run)
        if not dry_run:
            relay(engine, open_broker(config), clock)
    print_json(record) if as_json else print_cycle(record)


def replay(
    cycle: Annotated[
        str, typer.Argument(help="The cycle's id, such as philly@2017-10-07T12:00:00Z#0123456789ab.")
    ],
    as_json: Json = False,
) -> None:
    """Compute a recorded cycle again from the journal and compare, byte for byte."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.policy.replaying import replay as replay_cycle

    with open_database(settings.load()) as engine, reading(engine) as reader:
        replayed = replay_cycle(reader, cycle)
    if as_json:
        print_json(replayed.as_json())
    elif replayed.ok:
        print(f"{cycle}: the same, byte for byte")
    else:
        print(f"{cycle}: {replayed.difference}")
    if not replayed.ok:
        raise typer.Exit(PROBLEMS)


def print_cycle(record: dict[str, Any]) -> None:
    """Print a cycle's allocations and the first of its decisions."""
    from gpuledger.kernel.amounts import people_gpu_hours

    rows = [
        (a["account"], f"{a['share_ppm'] / 10_000:.2f} %", people_gpu_hours(a["used_gpu_ms"]),
         people_gpu_hours(a["entitled_gpu_ms"]), a["ratio"] or "-", a["demand_gpus"], a["issued_gpus"])
        for a in record["allocations"]
    ]  # fmt: skip
    columns = ["account", ">share", ">used GPU-h", ">entitled GPU-h", ">ratio", ">demand", ">issued"]
    print_table(columns, rows, title=f"cycle {record['cycle']}: {record['supply_gpus']} GPUs")
    for decision in record["decisions"][:SHOWN_MAX]:
        print(f"{decision['workload']}: {decision['action']}. {decision['reason']}")
    if len(record["decisions"]) > SHOWN_MAX:
        print(f"... and {len(record['decisions']) - SHOWN_MAX} more decisions (--json shows all)")
