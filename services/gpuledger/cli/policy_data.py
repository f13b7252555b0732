"""``gpuledger policy-data``: what rules are in force, and from when."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.applying import read_file, tell
from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import AsOf, From, Json, Yes, moment_or_now, recorded
from gpuledger.cli.output import counted, note, print_json, print_table

if TYPE_CHECKING:
    from gpuledger.database.engine import Reader
    from gpuledger.kernel.calendar import Calendar

app = typer.Typer(
    help="Policy data: the rate card, the XID table and the policy's settings, with versions.",
    no_args_is_help=True,
)


@app.command("apply")
def apply(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A policy file (YAML); see docs/policy-file.md.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Yes = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Put a policy file in force, now or from a moment on; charges for time from then on are restated."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.ingest import policy_file
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import policies, queries
    from gpuledger.ledger.attempts import booked

    file = read_file(path, policy_file.read)
    config, clock, applied = settings.load(), SystemClock(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            at_s = moment_or_now(from_, "--from", calendar)
            changes = policy_file.plan(reader, file, at_s)
            restated = policies.charged_after(reader, at_s) if changes else 0
            clusters = queries.clusters(reader)
        for change in changes:
            note(change)
        if restated:
            note(f"restated: {counted(restated, 'workload')} charged for time from then on")
        if not dry_run and agreed(len(changes), yes=yes):
            if changes:
                put = partial(policy_file.put, file=file, at_s=at_s, by=who(), clock=clock, calendar=calendar)
                booked(engine, ORG_BOOK, put, people=[who()])
            # Also without a change: an earlier call may have been killed between two books.
            for cluster in clusters:
                bring = partial(policies.bring_up_to_date, cluster=cluster, clock=clock, calendar=calendar)
                booked(engine, cluster, bring)
            applied = True
    tell(changes, {"restated_workloads": restated}, applied=applied, as_json=as_json)


@app.command("list")
def list_(
    at: Annotated[str | None, typer.Option("--at", help="In force at this moment; now unless given.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print the policy data in force at a moment, and its versions."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.ledger import queries
    from gpuledger.ledger.as_of import seq_of, vector_of

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        calendar = queries.calendar(reader, config.calendar, known_at)
        at_s = moment_or_now(at, "--at", calendar, known_at)
        document = _document(reader, at_s, calendar, seq_of(vector_of(reader, known_at), ORG_BOOK))
    print_json(document) if as_json else _print(document)


def _document(reader: "Reader", at_s: int, calendar: "Calendar", org_seq: int | None) -> dict[str, Any]:
    import msgspec

    from gpuledger.kernel.clock import instant, iso
    from gpuledger.kernel.knobs import PolicyConfig
    from gpuledger.ledger import health_states, knobs, queries
    from gpuledger.ledger.health import XID_TABLE
    from gpuledger.ledger.identity import names_of
    from gpuledger.ledger.rates import RATE_CARD

    card, made = queries.rate_card(reader, org_seq), knobs.versions(reader, org_seq=org_seq)
    policies = (RATE_CARD, XID_TABLE, knobs.SETTINGS)
    versions = [v for policy in policies for v in queries.policy_versions(reader, policy, org_seq=org_seq)]
    names = names_of(reader, [version.by for _, _, version in versions])
    clusters = sorted({version.cluster for version in made if version.cluster is not None})
    return {
        "at": iso(instant(at_s)),
        "organisation": {"timezone": calendar.timezone, "period": "month"},
        "rate_card": {model: card.weight(model, at_s) for model in sorted(card.steps)},
        "xid_table": msgspec.to_builtins(health_states.tables(reader, org_seq=org_seq).at(at_s)),
        "settings": msgspec.to_builtins(PolicyConfig()) | knobs.in_force(made, None, at_s),
        "cluster_settings": {cluster: knobs.in_force_alone(made, cluster, at_s) for cluster in clusters},
        "versions": [
            {
                "policy": v.policy,
                "from": iso(instant(from_s)),
                **({"weights": v.weights} if v.policy == RATE_CARD else {}),
                **({"xid_table": msgspec.to_builtins(v.xid_table)} if v.policy == XID_TABLE else {}),
                **({"settings": v.settings, "cluster": v.on_cluster} if v.policy == knobs.SETTINGS else {}),
                "by": names.get(v.by, v.by),
            }
            for _, from_s, v in versions
        ],
    }


def _print(document: dict[str, Any]) -> None:
    import msgspec

    from gpuledger.events.budget import XidTable
    from gpuledger.ingest.policy_file import meanings

    at, own = document["at"], document["cluster_settings"]
    print(f"organisation: days and periods in {document['organisation']['timezone']}, period month")
    print_table(
        ["GPU model", ">weight (per mille)"],
        list(document["rate_card"].items()),
        title=f"rate card at {at}",
    )
    table = msgspec.convert(document["xid_table"], XidTable)
    print_table(["XID", "meaning"], list(meanings(table).items()), title=f"XID table at {at}")
    print_table(
        ["setting of the policy", ">every cluster", *(f">{cluster}" for cluster in own)],
        [
            (name, value, *(settings.get(name, "") for settings in own.values()))
            for name, value in document["settings"].items()
        ],
        title=f"settings at {at}",
    )
    for version in document["versions"]:
        said = version.get("weights") or version.get("settings")
        what = ", ".join(f"{name} {value}" for name, value in said.items()) if said else "an XID table"
        of = f"{version['cluster']}: " if version.get("cluster") else ""
        print(f"from {version['from']} by {version['by']}: {of}{what}")
