"""``gpuledger incident``: hardware failures, the runs that they ended, and what was given back for them."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import AsOf, Cluster, From, Json, OneCluster, To, Yes, recorded, window
from gpuledger.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from gpuledger.ledger.incident_report import IncidentRow
    from gpuledger.ledger.incident_review import Revision
    from gpuledger.ledger.incidents import Proposal

app = typer.Typer(help="Hardware failures and their credits.", no_args_is_help=True)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be booked and stop.")]


@app.command("list")
def list_(
    cluster: Cluster = None,
    from_: From = None,
    to: To = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List the incidents that were noticed in a window, with every run and what it was given back."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.ledger import queries
    from gpuledger.ledger.incident_report import incidents

    config, known_at = settings.load(), recorded(as_of)
    with open_database(config) as engine, reading(engine) as reader:
        from_s, to_s = window(from_, to, queries.calendar(reader, config.calendar, known_at))
        found = incidents(reader, cluster, from_s, to_s, known_at)
    if as_json:
        print_json({"incidents": [_document(row) for row in found]})
        return
    from gpuledger.kernel.amounts import people_gpu_hours
    from gpuledger.kernel.clock import iso

    rows = [
        (row.cluster, row.incident, row.fault, iso(row.noticed_at), run.run, run.account or "-", run.state,
         people_gpu_hours(run.credited_gpu_ms))
        for row in found
        for run in row.runs
    ]  # fmt: skip
    print_table(
        ["cluster", "incident", "fault", "noticed", "run", "account", "state", ">credited GPU-h"], rows
    )


def _document(row: "IncidentRow") -> dict[str, Any]:
    from gpuledger.kernel.amounts import gpu_hours

    document = row.as_json()
    for part in (document, *document["runs"]):
        part["credited_gpu_hours"] = str(gpu_hours(part["credited_gpu_ms"]))
    return document


@app.command("credit")
def credit(
    cluster: OneCluster,
    from_: From = None,
    to: To = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Find hardware failures and give back what the runs that they ended have lost; again changes nothing.

    Of failures that were noticed in the window, up to now unless told otherwise. A credit of which the facts were
    superseded is withdrawn.
    """
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import incidents, queries
    from gpuledger.ledger.attempts import booked

    config, clock, applied = settings.load(), SystemClock(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            from_s, to_s = window(from_, to, calendar)
            from_s, to_s = from_s or 0, seconds(clock.now()) + 1 if to_s is None else to_s
            proposals = incidents.propose(reader, cluster, from_s, to_s)
            revisions = incidents.revise(reader, cluster, from_s, to_s)
        for line in (*_shown(proposals), *_revised(revisions)):
            note(line)
        if not dry_run and agreed(len(proposals) + len(revisions), yes=yes):
            credit = partial(
                incidents.credit, cluster=cluster, from_s=from_s, to_s=to_s, clock=clock, calendar=calendar
            )
            done = booked(engine, cluster, credit)
            proposals, revisions, applied = list(done.proposals), list(done.revisions), True
    runs = sum(len(p.fresh) for p in proposals)
    if as_json:
        found = [
            {"incident": p.incident.incident, "host": p.incident.host, "fault": p.incident.fault,
             "runs": [str(run) for run in p.incident.runs], "credited": [str(run) for run in p.fresh]}
            for p in proposals
        ]  # fmt: skip
        again = [
            {"incident": r.incident, "run": str(r.run), "state": "credited" if r.stands else "withdrawn"}
            for r in revisions
        ]
        print_json({"cluster": cluster, "incidents": found, "revised": again, "applied": applied})
        return
    not_ = "" if applied else "not "
    if proposals:
        print(f"{_counted(len(proposals), 'incident')} with {_counted(runs, 'run')} {not_}credited")
    if revisions:
        print(f"{_counted(len(revisions), 'credit')} {not_}revised")
    if not (proposals or revisions):
        print("nothing to credit")


def _shown(proposals: "list[Proposal]") -> list[str]:
    """Return what is new as lines for people."""
    from gpuledger.kernel.clock import instant, iso

    lines = []
    for proposal in proposals:
        incident = proposal.incident
        lines.append(
            f"+ incident {incident.incident}  {incident.fault}, noticed {iso(instant(incident.noticed_s))}"
        )
        lines += [f"+   credit {run}" for run in proposal.fresh]
    return lines


def _revised(revisions: "list[Revision]") -> list[str]:
    """Return what is concluded otherwise as lines for people."""
    return [
        f"+ credit {r.run} again  {r.incident}" if r.stands else f"- credit {r.run}  {r.incident}: superseded"
        for r in revisions
    ]


@app.command("reverse")
def reverse(
    incident: Annotated[str, typer.Argument(help="The incident's id, such as host7@2026-03-01T10:00:00Z.")],
    *,
    cluster: OneCluster,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the reversal.")],
    run: Annotated[
        str | None, typer.Option("--run", metavar="WORKLOAD/RUN", help="One run; all unless given.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="Who orders it; you unless given.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take back the credit of an incident, for good: no later search gives it again."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger import incidents, queries
    from gpuledger.ledger.attempts import booked

    config, applied = settings.load(), False
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            planned = incidents.reversal(reader, cluster, incident, run=run, reason=reason)
        for name in planned.runs:
            note(f"- credit {name}  {incident}")
        if not dry_run and agreed(len(planned.runs), yes=yes):
            planned = booked(
                engine,
                cluster,
                lambda writer: incidents.reverse(
                    writer, cluster, incident, run=run, by=by or who(), reason=reason,
                    clock=SystemClock(), calendar=calendar,
                ),
                people=[by or who()],
            )  # fmt: skip
            applied = True
    if as_json:
        runs, repeated = [str(name) for name in planned.runs], [str(name) for name in planned.repeated]
        document = {"cluster": cluster, "incident": incident, "runs": runs, "repeated": repeated}
        print_json({**document, "seq": planned.seq, "applied": applied})
    elif not planned.runs:
        print(f"nothing to reverse: {_counted(len(planned.repeated), 'credit')} reversed before")
    else:
        print(f"{_counted(len(planned.runs), 'credit')} {'reversed' if applied else 'not reversed'}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)
