"""``gpuledger cycle``, ``replay`` and ``policy``."""

from typing import Annotated, Any

import typer

from gpuledger.cli.options import AnyCluster, Cluster, Json, moment_or_now
from gpuledger.cli.output import note, print_json, print_table
from gpuledger.kernel.exits import PROBLEMS

SHOWN_MAX = 10


app = typer.Typer(help="The policy as a service.", no_args_is_help=True)


Every = Annotated[int, typer.Option("--every", min=1, metavar="SECONDS", help="The interval of cycles.")]
Keep = Annotated[
    int, typer.Option("--keep", min=0, metavar="HOURS", help="How long every decision can be looked up.")
]
Silence = Annotated[
    int,
    typer.Option(
        "--silence",
        min=5,
        max=86_400,
        metavar="SECONDS",
        help="How long a leader may say nothing before it is taken for paused; more than its longest cycle.",
    ),
]


@app.command("run")
def run(
    cluster: Annotated[
        list[str] | None, typer.Option("--cluster", help="A cluster; repeat for more; all unless given.")
    ] = None,
    every: Every = 60,
    keep: Keep = 24,
    silence: Silence = 60,
    once: Annotated[bool, typer.Option("--once", help="One cycle for each cluster, then end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --once: the ids as one JSON document.")
    ] = False,
) -> None:
    """Lead clusters: run the policy by interval and by event, record and publish; one process leads, others stand by.

    A submission or an end is answered within a second or two. After an outage there is one cycle, for now.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ingest.relay import relay
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries
    from gpuledger.policy.leading import Leading, Terms
    from gpuledger.streams.opening import open_broker

    if as_json and not once:
        raise Refused(
            "--json goes with --once", hint="a leader says what happens on stderr, until interrupted"
        )
    config, clock = settings.load(), SystemClock()
    with open_database(config) as engine:
        with reading(engine) as reader:
            for name in cluster or ():
                queries.require_cluster(reader, name)
        leading = Leading(
            engine,
            clock,
            config.calendar,
            Terms(clusters=tuple(cluster or ()), every_s=every, kept_s=keep * 3600, silence_s=silence),
            publish=lambda: relay(engine, open_broker(config), clock),
            notify=note,
        )
        if not once:
            leading.run()
        issued: list[str] = []
        try:
            leading.once(issued.append)
        finally:  # some clusters have their cycle where others have none
            if as_json:
                print_json({"cycles": issued})
            else:
                for cycle_id in issued:
                    print(cycle_id)


@app.command("status")
def status(
    cluster: Cluster = None,
    max_age: Annotated[
        int | None,
        typer.Option(
            "--max-age", metavar="SECONDS", help="Exit 3 where nobody leads, or the newest cycle is older."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show who leads each cluster, how old its newest cycle is, what waits, and who is owed."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import people_gpu_hours
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import policy_status, queries
    from gpuledger.policy.status import as_json as status_json

    with open_database(settings.load()) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        every = [one for one in policy_status.read(reader) if cluster in (None, one.cluster)]
        found = [status_json(one, SystemClock().now()) for one in every]
    if as_json:
        print_json({"clusters": found})
    else:
        rows = [
            (c["cluster"], c["leader"] or "nobody", c["cycle"] or "-", "-" if c["age_s"] is None else c["age_s"],
             "-" if c["took_ms"] is None else c["took_ms"], sum(c["waiting"].values()) if c["cycle"] else "-",
             *("-" if c[key] is None else people_gpu_hours(c[key]) for key in ("owed_gpu_ms", "over_service_gpu_ms")))
            for c in found
        ]  # fmt: skip
        columns = [
            "cluster",
            "leader",
            "newest cycle",
            ">age s",
            ">took ms",
            ">waiting",
            ">owed GPU-h",
            ">over GPU-h",
        ]
        print_table(columns, rows)
    if max_age is not None and any(
        c["leader"] is None or (c["age_s"] or 0) > max_age or c["age_s"] is None for c in found
    ):
        raise typer.Exit(PROBLEMS)


def cycle(
    cluster: AnyCluster = None,
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
    else:
        print(f"{cycle}: {replayed.verdict}")
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
