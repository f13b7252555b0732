"""``gpuledger proposal``: changes of budgets are proposed, discussed and decided, where the database is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from gpuledger.cli.asking import confirmed, who
from gpuledger.cli.options import AsOf, Json, Yes
from gpuledger.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from gpuledger.database.engine import Reader
    from gpuledger.events import proposal
    from gpuledger.kernel.calendar import Calendar

    _Step = proposal.Commented | proposal.Approved | proposal.Rejected | proposal.Withdrawn

app = typer.Typer(
    help="Proposals: other shares, grants or transfers, decided by another person.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="PROPOSAL", help="Its name, as `proposal list` shows it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with the proposal.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", help="Idempotency key: what is repeated under it is booked once; random unless given."
    ),
]
Found = TypeVar("Found")


@app.command("list")
def list_(
    *,
    state: Annotated[
        str | None,
        typer.Option("--state", help="pending, approved, rejected or withdrawn; all unless given."),
    ] = None,
    as_of: AsOf = None,
    as_json: Json = False,
) -> None:
    """List what was proposed, the newest first."""
    from gpuledger.kernel.clock import iso
    from gpuledger.kernel.errors import Refused
    from gpuledger.ledger.proposals import State, proposals

    if state is not None and state not in set(State):
        raise Refused(f"--state: {state!r} is none", hint=f"one of {', '.join(State)}")
    found, now = _read(lambda reader, at: proposals(reader, as_of=at), as_of)
    kept = [made for made in found if state in (None, made.state)]
    if as_json:
        print_json({"proposals": [made.as_json(now) for made in kept], "as_of": iso(now)})
        return
    rows = [
        (made.asked.proposal, made.state + " (overdue)" * made.is_overdue(now), made.asked.by,
         iso(made.proposed_at)[:10], made.asked.cluster or "every cluster", ", ".join(made.accounts))
        for made in kept
    ]  # fmt: skip
    print_table(["proposal", "state", "by", "on", "about", "accounts"], rows)


@app.command("show")
def show(name: Name, *, as_of: AsOf = None, as_json: Json = False) -> None:
    """Show a proposal: what it changes, what was said of it, and what became of it."""
    from gpuledger.kernel.clock import iso
    from gpuledger.ledger.proposals import proposal_of

    made, now = _read(lambda reader, at: proposal_of(reader, name, as_of=at), as_of)
    if as_json:
        print_json({**made.as_json(now), "as_of": iso(now)})
        return
    print(f"{name}, {made.state}: {made.asked.reason}  ({made.asked.by}, {iso(made.proposed_at)})")
    for line in changes_of(made.asked):
        print(f"  {line}")
    for line in effects_of(made.asked):
        print(f"    {line}")
    ended = () if made.decided is None else (made.decided,)
    for said in (*made.comments, *ended):
        print(f"{iso(said.at)}  {said.by}: {said.text}")


@app.command("make")
def make(
    *,
    reason: Reason,
    share: Annotated[
        list[str] | None,
        typer.Option("--share", metavar="ACCOUNT=SHARE", help="A new share; repeat for more."),
    ] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option("--grant", metavar="ACCOUNT=GPU_HOURS", help="GPU-time to be given; repeat for more."),
    ] = None,
    transfer: Annotated[
        list[str] | None,
        typer.Option(
            "--transfer", metavar="FROM:TO=GPU_HOURS", help="GPU-time to be moved; repeat for more."
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Whose GPU-time is given or moved.")
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", help="In which budget period, such as 2026-12.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="From when on new shares hold: 2026-12-15, or an instant.")
    ] = None,
    decide_by: Annotated[
        str | None, typer.Option("--decide-by", help="When an answer is due; like --from.")
    ] = None,
    simulation: Annotated[
        Path | None, typer.Option("--simulation", help="What `gpuledger simulate compare --json` printed.")
    ] = None,
    key: Key = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would change and stop.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Propose changes, which are made together once another person approves them."""
    from gpuledger.cli.proposals_reading import Asked, read
    from gpuledger.events.envelope import ORG_BOOK
    from gpuledger.ledger.proposing import name_for

    key = _key(key)
    name = name_for(cluster or ORG_BOOK, key)
    asked = Asked(
        share or [], grant or [], transfer or [], cluster=cluster, period=period, from_=from_,
        decide_by=decide_by, simulation=simulation, reason=reason,
    )  # fmt: skip
    _propose(
        lambda calendar: read(asked, name, who(), calendar), key, dry_run=dry_run, yes=yes, as_json=as_json
    )


@app.command("comment")
def comment(name: Name, *, reason: Reason, key: Key = None, as_json: Json = False) -> None:
    """Say something about a proposal; it is kept with it."""
    from gpuledger.events import proposal

    _step(name, proposal.Commented, reason, key, yes=True, as_json=as_json)


@app.command("approve")
def approve(name: Name, *, reason: Reason, key: Key = None, yes: Yes = False, as_json: Json = False) -> None:
    """Approve a proposal: all that it asks for is booked with the approval, or nothing is."""
    from gpuledger.events import proposal

    _step(name, proposal.Approved, reason, key, yes=yes, as_json=as_json)


@app.command("reject")
def reject(name: Name, *, reason: Reason, key: Key = None, yes: Yes = False, as_json: Json = False) -> None:
    """Turn a proposal down."""
    from gpuledger.events import proposal

    _step(name, proposal.Rejected, reason, key, yes=yes, as_json=as_json)


@app.command("withdraw")
def withdraw(name: Name, *, reason: Reason, key: Key = None, yes: Yes = False, as_json: Json = False) -> None:
    """Take back a proposal of one's own."""
    from gpuledger.events import proposal

    _step(name, proposal.Withdrawn, reason, key, yes=yes, as_json=as_json)


def changes_of(asked: "proposal.Proposed") -> list[str]:
    """Return what a proposal asks for, a line for each change."""
    from gpuledger.kernel.amounts import gpu_hours
    from gpuledger.kernel.clock import iso

    since = "" if asked.effective_at is None else f" from {iso(asked.effective_at)} on"
    return [
        *(f"share    {change.account} -> {change.share}{since}" for change in asked.shares),
        *(
            f"grant    {change.account}  {asked.cluster} {change.period}  {gpu_hours(change.gpu_ms):,} GPU-hours"
            for change in asked.grants
        ),
        *(
            f"transfer {change.account} -> {change.to}  {asked.cluster} {change.period}"
            f"  {gpu_hours(change.gpu_ms):,} GPU-hours"
            for change in asked.transfers
        ),
    ]


def effects_of(asked: "proposal.Proposed") -> list[str]:
    """Return what a proposal would change, as was worked out when it was made, a line for each account."""
    from gpuledger.kernel.amounts import gpu_hours

    if asked.effect is None:
        return []
    return [
        *(
            f"{row.cluster}  {row.account}: {_percent(row.before_ppm)} -> {_percent(row.after_ppm)} of the cluster,"
            f" {gpu_hours(row.before_gpu_ms):,} -> {gpu_hours(row.after_gpu_ms):,} GPU-hours of {asked.effect.period}"
            for row in asked.effect.shares
        ),
        *(
            f"{row.account} {row.period}: {gpu_hours(row.added_gpu_ms):+,} GPU-hours,"
            + (" none" if row.available_gpu_ms is None else f" {gpu_hours(row.available_gpu_ms):,}")
            + " left before"
            for row in asked.effect.budgets
        ),
    ]


def _percent(ppm: int) -> str:
    return f"{ppm // 100 / 100:.2f} %"


def _key(key: str | None) -> str:
    import uuid

    return str(uuid.uuid4()) if key is None else key


def _read(
    read: "Callable[[Reader, dt.datetime | None], Found]", as_of: str | None
) -> "tuple[Found, dt.datetime]":
    """Read the books; return what was found with the instant that it is of."""
    from gpuledger import settings
    from gpuledger.cli.options import recorded
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock

    believed = recorded(as_of)
    with open_database(settings.load()) as engine, reading(engine) as reader:
        return read(reader, believed), believed or SystemClock().now()


def _propose(
    order: "Callable[[Calendar], proposal.Proposed]", key: str, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    import msgspec

    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.proposal_effects import effect_of
    from gpuledger.ledger.proposing import carry_out, check_proposed

    config, clock = settings.load(), SystemClock()
    now_s = seconds(clock.now())
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            asked = order(calendar)
            queries.require_cluster(reader, asked.cluster)
            check_proposed(reader, asked, now_s=now_s, calendar=calendar)
            effect = effect_of(reader, asked, now_s=now_s, calendar=calendar)
        shown = msgspec.structs.replace(asked, effect=effect)
        for line in (*changes_of(shown), *effects_of(shown)):
            note(line)
        document: dict[str, Any] = {
            "applied": False, "repeated": False, "proposal": asked.proposal,
            "effect": msgspec.to_builtins(effect), "seq": None, "key": key,
        }  # fmt: skip
        if not dry_run and confirmed("propose it?", yes=yes):
            done = carry_out(engine, asked, key=key, clock=clock, default_calendar=config.calendar)
            document |= {"applied": True, "repeated": done.repeated, "seq": done.seq}
    if as_json:
        print_json(document)
    else:
        print(f"proposed as {asked.proposal}" if document["applied"] else "not proposed")


def _step(name: str, kind: "type[_Step]", reason: str, key: str | None, *, yes: bool, as_json: bool) -> None:
    """Book a step of a proposal, after having shown what is decided."""
    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock
    from gpuledger.ledger.proposals import proposal_of
    from gpuledger.ledger.proposing import carry_out

    config = settings.load()
    with open_database(config) as engine:
        with reading(engine) as reader:
            made = proposal_of(reader, name)
        for line in changes_of(made.asked):
            note(line)
        step = kind(proposal=name, cluster=made.asked.cluster, by=who(), reason=reason)
        document: dict[str, Any] = {"applied": False, "repeated": False, "seq": None, "key": _key(key)}
        if confirmed("book it?", yes=yes):
            done = carry_out(
                engine, step, key=document["key"], clock=SystemClock(), default_calendar=config.calendar,
                by_another=config.approval == "another",
            )  # fmt: skip
            document |= {"applied": True, "repeated": done.repeated, "seq": done.seq}
    if as_json:
        print_json(document)
    elif document["applied"]:
        print(f"row {document['seq']} of {made.book}" + (", booked before" * document["repeated"]))
    else:
        print("nothing booked")
