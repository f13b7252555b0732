"""``gpuledger policy-data``: what rules are in force, and from when."""

import datetime as dt
from pathlib import Path
from typing import Annotated, Any

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import From, Json, moment
from gpuledger.cli.output import note, print_json, print_table

app = typer.Typer(help="Policy data: the rate card, with versions.", no_args_is_help=True)


@app.command("apply")
def apply(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A policy file (YAML); see docs/policy-file.md.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Put a policy file in force, now or from a moment on; charges for time from then on are restated."""
    from gpuledger import settings
    from gpuledger.database.engine import reading, writing
    from gpuledger.database.opening import open_database
    from gpuledger.ingest import policy_file
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.kernel.errors import NotFound, Refused
    from gpuledger.ledger import policies, queries

    try:
        file = policy_file.read(path)
    except NotFound as error:  # a missing file is bad usage, not a missing account
        raise Refused(error.message, hint=error.hint) from error
    config, clock, applied = settings.load(), SystemClock(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            at_s = moment(from_, "--from", calendar)
            at_s = seconds(clock.now()) if at_s is None else at_s
            changes = policy_file.plan(reader, file, at_s)
            restated = policies.charged_after(reader, at_s) if changes else 0
            clusters = queries.clusters(reader)
        for change in changes:
            note(change)
        if restated:
            note(f"{restated} workloads that are charged for time from then on are restated")
        if not dry_run and agreed(len(changes), yes=yes):
            if changes:
                with writing(engine) as writer:
                    policies.set_weights(writer, file.rate_card, at_s, who(), clock=clock, calendar=calendar)
            # Also without a change: an earlier call may have been killed between two books.
            for cluster in clusters:
                with writing(engine) as writer:
                    policies.bring_up_to_date(writer, cluster, clock=clock, calendar=calendar)
            applied = True
    if as_json:
        print_json({"changes": changes, "restated_workloads": restated, "applied": applied})
    elif not changes:
        print("nothing to change")
    else:
        print(f"{len(changes)} changes {'applied' if applied else 'not applied'}")


@app.command("list")
def list_(
    at: Annotated[str | None, typer.Option("--at", help="In force at this moment; now unless given.")] = None,
    as_json: Json = False,
) -> None:
    """Print the policy data in force at a moment, and its versions."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, instant, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.rates import RATE_CARD

    config = settings.load()
    with open_database(config) as engine, reading(engine) as reader:
        calendar = queries.calendar(reader, config.calendar)
        at_s = moment(at, "--at", calendar)
        at_s = seconds(SystemClock().now()) if at_s is None else at_s
        card, versions = queries.rate_card(reader), queries.policy_versions(reader, RATE_CARD)
    in_force = {model: card.weight(model, at_s) for model in sorted(card.steps)}
    if as_json:
        document: dict[str, Any] = {
            "at": _told(instant(at_s)),
            "organisation": {"timezone": calendar.timezone, "period": "month"},
            "rate_card": in_force,
            "versions": [
                {"policy": v.policy, "from": _told(instant(from_s)), "weights": v.weights, "by": v.by}
                for _, from_s, v in versions
            ],
        }
        print_json(document)
        return
    print(f"organisation: days and periods in {calendar.timezone}, period month")
    print_table(
        ["GPU model", ">weight (per mille)"],
        list(in_force.items()),
        title=f"rate card at {_told(instant(at_s))}",
    )
    for _, from_s, version in versions:
        weights = ", ".join(f"{model} {weight}" for model, weight in (version.weights or {}).items())
        print(f"from {_told(instant(from_s))} by {version.by}: {weights}")


def _told(at: dt.datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
