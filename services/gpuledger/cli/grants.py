"""``gpuledger budget grant``, ``transfer`` and ``adjust``: one order each, shown first, booked once per key."""

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from gpuledger.cli.asking import agreed, who
from gpuledger.cli.options import Json, Yes
from gpuledger.cli.output import note, print_json

if TYPE_CHECKING:
    from gpuledger.kernel.calendar import Calendar
    from gpuledger.ledger.commands import Command

Period = Annotated[str, typer.Option("--period", help="Budget period, such as 2026-12.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", help="The cluster; the account's root unless given.")
]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept with the order.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", help="Idempotency key: an order repeated under it is booked once; random unless given."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change and stop.")]


class Adjustable(StrEnum):
    """Movements that somebody may correct."""

    GRANT = "grant"
    CHARGE = "charge"
    CREDIT = "credit"
    UNALLOCATED = "unallocated"


Priority = Annotated[
    int | None,
    typer.Option("--priority", min=-(10**9), max=10**9, help="Order among lots; lower first, none last."),
]
GpuHours = Annotated[str, typer.Argument(metavar="GPU_HOURS", help="How much, such as 1200 or 0.5.")]


def grant(
    account: Annotated[str, typer.Argument(help="A leaf, or an inner account to limit its subtree.")],
    gpu_hours: GpuHours,
    *,
    period: Period,
    cluster: Cluster = None,
    priority: Priority = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="First day on which what is left of it is gone; like --from."),
    ] = None,
    rollover: Annotated[
        str | None,
        typer.Option("--rollover", help="What the next period gets: none, all, max 100, min 10 max 100."),
    ] = None,
    reason: Reason = "granted",
    key: Key = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give GPU-time to an account for a period; on an inner account it is a limit for all below it."""
    from gpuledger.cli.options import moment
    from gpuledger.events.budget import Granted
    from gpuledger.kernel.clock import instant
    from gpuledger.kernel.rollover import written

    amount, rule = read_gpu_hours(gpu_hours), written(rollover)

    def order(calendar: "Calendar", *, inner: bool) -> "Command":
        expires_s = moment(expires, "--expires", calendar)
        expires_at = None if expires_s is None else instant(expires_s)
        return Granted(
            account=account, cluster=cluster_of(account, cluster), period=period, gpu_ms=amount, reason=reason,
            by=who(), priority=priority, expires_at=expires_at, rollover=rule, limit=inner,
        )  # fmt: skip

    _execute(account, order, key, dry_run=dry_run, yes=yes, as_json=as_json)


def transfer(
    account: Annotated[str, typer.Argument(help="The leaf that gives.")],
    to: Annotated[str, typer.Argument(help="The leaf that gets.")],
    gpu_hours: GpuHours,
    *,
    period: Period,
    cluster: Cluster = None,
    reason: Reason = "transferred",
    key: Key = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Move GPU-time from one leaf to another; refused when the giver has not that much left."""
    from gpuledger.events.budget import Transferred

    amount = read_gpu_hours(gpu_hours)

    def order(calendar: "Calendar", *, inner: bool) -> "Command":  # noqa: ARG001 - as for a grant
        return Transferred(
            account=account, to=to, cluster=cluster_of(account, cluster), period=period, gpu_ms=amount, reason=reason,
            by=who(),
        )  # fmt: skip

    _execute(account, order, key, dry_run=dry_run, yes=yes, as_json=as_json)


def adjust(
    account: Annotated[
        str, typer.Argument(help="The leaf whose balance is wrong, or an inner account whose limit is.")
    ],
    gpu_hours: Annotated[
        str,
        typer.Argument(metavar="GPU_HOURS", help="How much, such as 12; after -- also below zero: -- -12."),
    ],
    *,
    code: Annotated[Adjustable, typer.Option("--code", help="The movement that is corrected.")],
    reason: Annotated[str, typer.Option("--reason", help="Why no fact can correct it; kept with the order.")],
    period: Period,
    cluster: Cluster = None,
    corrects: Annotated[
        int | None, typer.Option("--corrects", min=1, help="The row of the book that is corrected.")
    ] = None,
    key: Key = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Correct what no fact can correct, or lower a limit down to what is charged and held below it.

    Into a closed period it is booked as an adjustment of the open one.
    """
    from gpuledger.events.budget import AdjustmentPosted

    takes_back = gpu_hours.startswith("-")
    amount = read_gpu_hours(gpu_hours.removeprefix("-")) * (-1 if takes_back else 1)

    def order(calendar: "Calendar", *, inner: bool) -> "Command":  # noqa: ARG001 - as for a grant
        return AdjustmentPosted(
            account=account, cluster=cluster_of(account, cluster), period=period, code=code.value, gpu_ms=amount,
            reason=reason, by=who(), corrects_seq=corrects, limit=inner,
        )  # fmt: skip

    _execute(account, order, key, dry_run=dry_run, yes=yes, as_json=as_json)


def read_gpu_hours(text: str) -> int:
    """Read an amount above zero, as gpu_ms.

    Raises:
        Refused: When it is none, or no whole number of milli-GPU-seconds.
    """
    from gpuledger.kernel.amounts import from_gpu_hours
    from gpuledger.kernel.errors import Refused

    try:
        amount = from_gpu_hours(Decimal(text))
    except (InvalidOperation, ValueError) as error:
        said = (
            error
            if isinstance(error, ValueError) and not isinstance(error, InvalidOperation)
            else "no number"
        )
        raise Refused(f"GPU_HOURS: {text!r}: {said}", hint="such as 1200 or 0.5") from error
    if amount <= 0:
        raise Refused(f"GPU_HOURS: {text!r} is not above zero", hint="such as 1200 or 0.5")
    return amount


def cluster_of(account: str, cluster: str | None) -> str:
    """Return the cluster that is meant: the one named, or that of the account's root."""
    return cluster or account.partition("/")[0]


class _Order(Protocol):
    """Makes the command once the ledger is open."""

    def __call__(self, calendar: "Calendar", *, inner: bool) -> "Command":
        """Return the command; ``inner`` tells whether the account has children."""
        ...


def _execute(
    account: str, order: _Order, key: str | None, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    import uuid

    from gpuledger import settings
    from gpuledger.database.engine import reading
    from gpuledger.database.opening import open_database
    from gpuledger.kernel.clock import SystemClock, seconds
    from gpuledger.ledger import queries
    from gpuledger.ledger.commands import carry_out, check

    config, clock = settings.load(), SystemClock()
    document: dict[str, Any] = {"applied": False, "repeated": False, "seq": None, "key": key}
    with open_database(config) as engine:
        with reading(engine) as reader:
            calendar = queries.calendar(reader, config.calendar)
            command = order(calendar, inner=queries.is_inner(reader, account))
            if key is None:  # under a key, what was booked before may not be possible now
                check(reader, command, now_s=seconds(clock.now()), calendar=calendar)
        document["changes"] = [shown(command)]
        note(document["changes"][0])
        if not dry_run and agreed(1, yes=yes):
            document["key"] = str(uuid.uuid4()) if key is None else key
            done = carry_out(
                engine, command, key=document["key"], clock=clock, default_calendar=config.calendar
            )
            document |= {"applied": True, "repeated": done.repeated, "seq": done.seq}
    if as_json:
        print_json(document)
    elif document["applied"]:
        print(f"row {document['seq']} of {command.cluster}" + (", booked before" * document["repeated"]))
    else:
        print("1 change not applied")


def shown(command: "Command") -> str:
    """Return a command as one line for people."""
    from gpuledger.events.budget import AdjustmentPosted, Transferred
    from gpuledger.kernel.amounts import gpu_hours

    where = f"{command.cluster} {command.period}  {gpu_hours(command.gpu_ms):,} GPU-hours"
    if isinstance(command, Transferred):
        return f"~ transfer {command.account} -> {command.to}  {where}"
    if isinstance(command, AdjustmentPosted):
        what = "limit" if command.limit else command.code
        return f"~ adjust   {command.account}  {what}  {where}"
    return f"+ {'limit' if command.limit else 'grant'}    {command.account}  {where}"
