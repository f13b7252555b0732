"""``gpuledger mapping``: what foreign names mean, what a change of that would move, and which have no owner."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.applying import read_file, tell
from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import AsOf, Cluster, From, Json, Yes, moment_or_now, recorded
from gpuledger.cli.output import counted, note, print_json, print_table

if TYPE_CHECKING:
    import datetime as dt

    from gpuledger.database.engine import Reader
    from gpuledger.ingest.mapping_file import Plan
    from gpuledger.ledger.remapping import Survey

app = typer.Typer(help="Rules from foreign names to accounts and terms, with versions.", no_args_is_help=True)

FILE_HELP = "A mapping file (YAML); see docs/mapping-file.md."
SHOWN_MAX = 40


@app.command("apply")
def apply(
    path: Annotated[Path, typer.Argument(metavar="FILE", help=FILE_HELP)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and stop.")] = False,
    yes: Yes = False,
    from_: From = None,
    as_json: Json = False,
) -> None:
    """Put rules in force for workloads submitted from now, or from a moment, on; what had no owner is booked anew."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.ingest import mapping_file
    from gpuledger.ingest.intake import Intake
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import policies, queries
    from gpuledger.ledger.attempts import booked

    rules = read_file(path, mapping_file.read).as_rules()
    config, clock, applied = settings.load(), SystemClock(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            at_s = moment_or_now(from_, "--from", calendar)
            plan = mapping_file.plan(reader, rules, at_s, seconds(clock.now()), calendar)
            moves, clusters = _moves(reader, plan.survey), queries.clusters(reader)
        _note(plan, moves)
        if not dry_run and agreed(len(plan.changes), yes=yes):
            intake = Intake(engine, clock, config.calendar)
            if plan.changes:
                intake.ensure_accounts(plan.survey.accounts)
                set_mapping = partial(
                    policies.set_mapping, rules=rules, at_s=at_s, by=who(), supersedes=plan.supersedes, clock=clock,
                    calendar=calendar,
                )  # fmt: skip
                booked(engine, ORG_BOOK, set_mapping, people=[who()])
            # Also without a change: an earlier call may have been killed between two books.
            for cluster in clusters:
                bring = partial(policies.bring_up_to_date, cluster=cluster, clock=clock, calendar=calendar)
                booked(engine, cluster, bring)
            intake.open_periods(clusters)
            applied = True
    tell(plan.changes, moves, applied=applied, as_json=as_json)


@app.command("test")
def try_(
    path: Annotated[Path | None, typer.Argument(metavar="FILE", help=FILE_HELP)] = None,
    current: Annotated[bool, typer.Option("--current", help="The rules as they are, not a file.")] = False,
    cluster: Cluster = None,
    from_: From = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """Print which rule matches what sources said so far, and what a file would move from account to account."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.ingest import mapping_file
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger import queries, remapping
    from gpuledger.ledger.as_of import seq_of, vector_of

    if (path is None) != current:
        raise Refused("name a FILE, or --current", hint="one of them says which rules to try")
    rules = None if path is None else read_file(path, mapping_file.read).as_rules()
    config, known_at = settings.load(), recorded(as_of)
    now_s = seconds(known_at or SystemClock().now())
    with open_database(config) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        vector, calendar = vector_of(reader, known_at), queries.calendar(reader, config.calendar, known_at)
        at_s = moment_or_now(from_, "--from", calendar, known_at)
        if rules is None:
            made = remapping.versions(reader, org_seq=seq_of(vector, ORG_BOOK))
            survey = remapping.survey(reader, made, now_s, calendar, cluster, vector=vector)
        else:
            plan = mapping_file.plan(reader, rules, at_s, now_s, calendar, cluster, vector=vector)
            survey = plan.survey
        groups, moves = _groups(survey), _moves(reader, survey, known_at)
    if as_json:
        print_json({"groups": groups, **moves})
        return
    rows = [
        (g["cluster"], g["foreign"] or "-", " ".join(f"{k}={v}" for k, v in g["labels"].items()) or "-",
         g["rule"] or "-", g["account"], g["class"], g["workloads"], g["gpu_hours"])
        for g in groups[:SHOWN_MAX]
    ]  # fmt: skip
    columns = [
        "cluster",
        "source's account",
        "labels",
        ">rule",
        "account",
        "class",
        ">workloads",
        ">GPU-hours",
    ]
    print_table(columns, rows)
    if len(groups) > SHOWN_MAX:
        print(f"... and {len(groups) - SHOWN_MAX} more (--json shows all)")
    _print_moves(moves)


@app.command("unmapped")
def unmapped(cluster: Cluster = None, as_of: AsOf = None, as_json: Json = False) -> None:
    """Print the foreign names that no rule matches, with their GPU-time."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries, remapping

    known_at = recorded(as_of)
    now_s = seconds(known_at or SystemClock().now())
    with open_database(settings.load()) as engine, reading(engine) as reader:
        queries.require_cluster(reader, cluster)
        found = remapping.unmapped(reader, now_s, cluster, as_of=known_at)
    if as_json:
        rows = [
            {"cluster": u.cluster, "foreign": u.foreign, "account": u.account, "workloads": u.workloads,
             "gpu_ms": u.gpu_ms, "gpu_hours": str(gpu_hours(u.gpu_ms))}
            for u in found
        ]  # fmt: skip
        total = sum(u.gpu_ms for u in found)
        print_json({"unmapped": rows, "total_gpu_ms": total, "total_gpu_hours": str(gpu_hours(total))})
    elif not found:
        print("every name has an owner")
    else:
        columns = ["cluster", "foreign name", "booked to", ">workloads", ">GPU-hours"]
        print_table(
            columns,
            [(u.cluster, u.foreign, u.account, u.workloads, f"{gpu_hours(u.gpu_ms):,}") for u in found],
        )


def _groups(survey: "Survey") -> list[dict[str, Any]]:
    """Return the groups under their published keys, the most GPU-time first."""
    from gpuledger.kernel.amounts import gpu_hours

    return [
        {
            "cluster": group.cluster,
            "foreign": group.foreign,
            "labels": dict(group.labels),
            "rule": group.matched.number if group.matched else None,
            "account": group.account,
            "class": group.klass,
            "workloads": use.workloads,
            "gpu_ms": use.gpu_ms,
            "gpu_hours": str(gpu_hours(use.gpu_ms)),
        }
        for group, use in sorted(survey.groups.items(), key=lambda item: (-item[1].gpu_ms, item[0][:3]))
    ]


def _moves(reader: "Reader", survey: "Survey", as_of: "dt.datetime | None" = None) -> dict[str, Any]:
    """Return what moves, by account and by period, under its published keys."""
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.ledger import queries

    shut = queries.shut_periods(reader, as_of)
    return {
        "restated_workloads": survey.restated,
        "moves": [
            {
                "cluster": payer.cluster,
                "account": payer.account,
                "class": payer.klass,
                "before_gpu_ms": move.before,
                "after_gpu_ms": move.after,
                "before_gpu_hours": str(gpu_hours(move.before)),
                "after_gpu_hours": str(gpu_hours(move.after)),
            }
            for payer, move in survey.moves.items()
        ],
        "periods": [
            {
                "cluster": cluster,
                "period": period,
                "closed": period in shut.get(cluster, ()),
                "moved_gpu_ms": moved,
                "moved_gpu_hours": str(gpu_hours(moved)),
            }
            for (cluster, period), moved in sorted(survey.periods.items())
        ],
    }


def _note(plan: "Plan", moves: dict[str, Any]) -> None:
    from gpuledger.kernel.clock import instant, iso

    for change in plan.changes:
        note(change)
    for line in _lines(moves):
        note(line)
    if plan.changes and not moves["restated_workloads"]:
        note("nothing that is booked moves; --from reaches back")
    if plan.changes and plan.later is not None:
        note(f"from {iso(instant(plan.later))} on the rules that were set for then stay in force")


def _print_moves(moves: dict[str, Any]) -> None:
    for line in _lines(moves):
        print(line)


def _lines(moves: dict[str, Any]) -> list[str]:
    """Return what moves, a line each."""
    lines = [
        f"~ GPU-hours {m['account']} on {m['cluster']}, {m['class']}: {m['before_gpu_hours']} -> {m['after_gpu_hours']}"
        for m in moves["moves"]
    ]
    lines += [
        f"{p['moved_gpu_hours']} GPU-hours of {p['period']} on {p['cluster']} move"
        + ("; it is closed, so that they move in the open period" if p["closed"] else "")
        for p in moves["periods"]
        if p["moved_gpu_ms"]
    ]
    if moves["restated_workloads"]:
        lines.append(f"restated: {counted(moves['restated_workloads'], 'workload')}")
    return lines
