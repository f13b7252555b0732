"""Orders that people and services give to one book: checked and journalled under the book's lock.

A command carries an idempotency key. The same key with the same body is booked once and answered alike
for ever; with another body it is refused. A command that was refused is not journalled: the same key may
be tried again when the reason is gone (docs/decisions/0009).
"""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import AdjustmentPosted, Granted, Transferred
from gpuledger.events.envelope import book_of, data_json, decode_data, make
from gpuledger.events.fields import PRIORITY_MAX
from gpuledger.events.orders import Order
from gpuledger.events.registry import Fact
from gpuledger.kernel.accounts import BOOK_POT_ACCOUNT, own_path, owner_of
from gpuledger.kernel.amounts import GPU_MS_MAX, WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, seconds
from gpuledger.kernel.errors import KeyReused, NotFound, Refused
from gpuledger.kernel.rollover import written
from gpuledger.ledger import orders, queries, store
from gpuledger.ledger.append import append
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.balances import BalanceQuery, balance, room_under
from gpuledger.ledger.charges import CHARGE, CREDIT, GRANT, UNALLOCATED
from gpuledger.ledger.copying import driver
from gpuledger.ledger.identity import impersonal
from gpuledger.ledger.limits import Limit
from gpuledger.ledger.lots import expiry_day
from gpuledger.ledger.outlook import Outlook
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.remainder import remainder
from gpuledger.ledger.settled import Settled
from gpuledger.ledger.ticking import catch_up

SOURCE = "gpuledger/commands"

KEY_LENGTH_MAX = 200

Command = Granted | Transferred | AdjustmentPosted
"""What can be ordered."""


@dataclass(frozen=True, slots=True)
class Booked:
    """What became of a command.

    Args:
        seq: Its row in the book.
        recorded_at: When the book took it.
        repeated: Whether it had been booked before under the same key.
    """

    seq: int
    recorded_at: dt.datetime
    repeated: bool


def execute(writer: Writer, command: Command, *, key: str, clock: Clock, calendar: Calendar) -> Booked:
    """Check a command against the book as it stands, and journal it.

    Args:
        writer: A transaction of its own; the caller commits it.
        command: What is ordered.
        key: The idempotency key, unique among the book's commands.
        clock: Says when it takes effect.
        calendar: The organisation's days.

    Raises:
        KeyReused: When the key stands for another command.
        NotFound: When an account or the cluster does not exist.
        Refused: When the command asks for what cannot be.
    """
    book = book_of(command)
    check_key(key)
    queries.require_cluster(writer, book)
    store.lock_book(writer, book)
    if (before := booked_before(writer, book, key, command)) is not None:
        return before
    if isinstance(command, Transferred):  # what has lapsed is not there to be given
        catch_up(writer, book, seconds(clock.now()), clock=clock, calendar=calendar)
    check(writer, command, now_s=seconds(clock.now()), calendar=calendar)
    event, _ = make(id=key, source=SOURCE, at_s=seconds(clock.now()), data=command)
    head = append(writer, book, [event], clock=clock, calendar=calendar).head
    assert head is not None  # noqa: S101 - a new row moved it
    return Booked(head.last_seq, head.last_recorded_at, repeated=False)


def carry_out(
    engine: sa.Engine, command: Command, *, key: str, clock: Clock, default_calendar: Calendar
) -> Booked:
    """Book a command in a transaction of its own, and open the periods that it moves something in.

    Args:
        engine: The database.
        command: What is ordered.
        key: The idempotency key; see ``execute``.
        clock: Says when it takes effect.
        default_calendar: Cuts days until the organisation has set its zone.

    Raises:
        Refused: As ``execute``.
        Unavailable: When the database cannot be reached.
    """

    def give(writer: Writer) -> Booked:
        calendar = queries.calendar(writer, default_calendar)
        done = execute(writer, command, key=key, clock=clock, calendar=calendar)
        open_periods(writer, command.cluster, clock=clock, calendar=calendar)
        return done

    return booked(engine, command.cluster, give, clock=clock, people=[command.by])


def check_key(key: str) -> None:
    """Refuse a key that cannot be kept.

    Raises:
        Refused: When it is empty, too long, or holds characters that do not print.
    """
    if not 0 < len(key) <= KEY_LENGTH_MAX or not key.isprintable():
        raise Refused(
            f"an idempotency key has 1 to {KEY_LENGTH_MAX} printable characters, not {len(key)}",
            hint="use a UUID, or the number of the request",
        )


def check(connection: Reader | Writer, command: Command, *, now_s: int, calendar: Calendar) -> None:
    """Refuse a command that the book as it stands cannot take.

    Raises:
        NotFound: When an account or the cluster does not exist.
        Refused: When the command asks for what cannot be; says why.
    """
    queries.require_cluster(connection, command.cluster)
    calendar.period_bounds_s(command.period)
    amount = abs(command.gpu_ms) if isinstance(command, AdjustmentPosted) else command.gpu_ms
    if not 0 < amount <= GPU_MS_MAX:
        raise Refused(
            f"{gpu_hours(command.gpu_ms)} GPU-hours: an amount of nothing moves nothing, and one order moves at most"
            f" {gpu_hours(GPU_MS_MAX)}",
            hint="write GPU-hours above zero and within that",
        )
    if isinstance(command, AdjustmentPosted):
        # Into a closed period it goes as any late movement does: booked in the open one, effective in its own.
        _check_adjustment(connection, command, now_s, calendar)
        return
    if command.period in store.shut_periods(connection, command.cluster):
        raise Refused(
            f"{command.period} of {command.cluster} is closed",
            hint="order it in an open period, or gpuledger budget adjust corrects a closed one",
        )
    if isinstance(command, Granted):
        _check_grant(connection, command, calendar)
    else:
        _check_transfer(connection, command, now_s, calendar)


def _check_grant(connection: Reader | Writer, command: Granted, calendar: Calendar) -> None:
    _require(connection, command.account)
    if command.priority is not None and abs(command.priority) > PRIORITY_MAX:
        raise Refused(
            f"priority: {command.priority} is out of all bounds",
            hint=f"write -{PRIORITY_MAX} to {PRIORITY_MAX}",
        )
    if command.expires_at is not None:
        expiry_day(command.expires_at, calendar)
    if written(command.rollover) != command.rollover:
        raise Refused(
            f"rollover: {command.rollover!r} is not in its one spelling",
            hint=f"write {written(command.rollover)}",
        )
    if command.limit != queries.is_inner(connection, command.account):
        kind = "an inner account" if not command.limit else "a leaf"
        raise Refused(
            f"account {command.account!r} has become {kind}", hint="look again and repeat the command"
        )


def _check_adjustment(
    connection: Reader | Writer, command: AdjustmentPosted, now_s: int, calendar: Calendar
) -> None:
    if not command.reason.strip():
        raise Refused("an adjustment needs a reason", hint="say why no fact can correct it")
    if command.limit:
        _check_limit(connection, command, now_s, calendar)
    else:
        _require_leaf(connection, command.account)
    rows = queries.sequences(connection).get(command.cluster, 0)
    if command.corrects_seq is not None and not 0 < command.corrects_seq <= rows:
        raise Refused(
            f"row {command.corrects_seq} is not in the book {command.cluster}, which has {rows}",
            hint="name the row that is corrected, or none",
        )
    if command.code != GRANT:  # such corrections tell what happened, funded or not
        _require_standing(connection, command, now_s, calendar)
    elif command.gpu_ms < 0 and not command.limit:
        _require_unpromised(connection, command, -command.gpu_ms, now_s, calendar)


def _require_standing(
    connection: Reader | Writer, command: AdjustmentPosted, now_s: int, calendar: Calendar
) -> None:
    """Refuse to take back more than stands of the period, and to credit more than was charged net of credits."""
    query = BalanceQuery(command.cluster, command.period, as_known=True)
    try:
        found = balance(connection, command.account, query, now_s, calendar)
        charged, credited, unallocated = found.charged_gpu_ms, found.credited_gpu_ms, found.unallocated_gpu_ms
    except NotFound:
        charged = credited = unallocated = 0
    stands = {
        (CHARGE, False): (charged - credited, "charged, net of credits"),
        (CREDIT, True): (charged - credited, "charged, net of credits"),
        (CREDIT, False): (credited, "credited"),
        (UNALLOCATED, False): (unallocated, "unallocated use"),
    }
    left, what = stands.get((command.code, command.gpu_ms > 0), (None, ""))
    if left is not None and abs(command.gpu_ms) > left:
        raise Refused(
            f"{command.account!r} has {gpu_hours(max(left, 0))} GPU-hours {what} on {command.cluster}"
            f" in {command.period}, not {gpu_hours(abs(command.gpu_ms))}",
            hint="correct by less, or in the period to which it belongs",
        )


def _check_limit(
    connection: Reader | Writer, command: AdjustmentPosted, now_s: int, calendar: Calendar
) -> None:
    """Refuse to correct a limit that is none, or to lower it below what the subtree has spent and set aside."""
    _require(connection, command.account)
    if command.code != GRANT:
        raise Refused(
            f"account {command.account!r} is an inner node: its limit is all that can be corrected",
            hint=f"--code {GRANT}, or name a leaf below it",
        )
    if not queries.is_inner(connection, command.account):
        raise Refused(
            f"account {command.account!r} has become a leaf", hint="look again and repeat the command"
        )
    room = room_under(connection, Limit(command.cluster, command.period, command.account), now_s, calendar)
    if room is None:
        raise Refused(
            f"{command.account!r} has no limit on {command.cluster} in {command.period}",
            hint="gpuledger budget grant on an inner account sets one",
        )
    if room + command.gpu_ms < min(room, 0):
        raise Refused(
            f"of the limit of {command.account!r} on {command.cluster} in {command.period}"
            f" {gpu_hours(max(room, 0))} GPU-hours are neither charged nor set aside, not {gpu_hours(-command.gpu_ms)}",
            hint="take back less, or cancel what waits below it",
        )


def _check_transfer(
    connection: Reader | Writer, command: Transferred, now_s: int, calendar: Calendar
) -> None:
    if owner_of(command.account) == owner_of(command.to):
        raise Refused(f"{command.account!r} would give to itself", hint="name another account")
    for account in (command.account, command.to):
        _require_leaf(connection, account)
    query = BalanceQuery(command.cluster, command.period)
    try:
        left = balance(connection, command.account, query, now_s, calendar).own_available_gpu_ms
    except NotFound:
        left = 0
    if left < command.gpu_ms:
        raise Refused(
            f"{command.account!r} has {gpu_hours(left)} GPU-hours left on {command.cluster} in {command.period},"
            f" not {gpu_hours(command.gpu_ms)}",
            hint="transfer less, or grant more first",
        )
    _require_unpromised(connection, command, command.gpu_ms, now_s, calendar)


def _require_unpromised(
    connection: Reader | Writer,
    command: Transferred | AdjustmentPosted,
    gpu_ms: int,
    now_s: int,
    calendar: Calendar,
) -> None:
    """Refuse to take from a hard account what its charges and holds count on, in this period or a later one."""
    account = owner_of(command.account)
    if account not in queries.hard_accounts(connection, instant(now_s)):
        return
    open_time = remainder(connection, command.cluster, now_s, None, calendar, as_known=True)
    book = Settled(command.cluster, frozenset(), calendar.day_of(now_s), calendar)
    outlook = Outlook(connection, book, account, open_time, since=command.period)
    day = orders.day_of(command.period, now_s, calendar)
    for period, weighted in outlook.lacking({day: gpu_ms * WEIGHT_ONE}).items():
        raise Refused(
            f"{command.account!r} is hard, and {gpu_hours(-(-weighted // WEIGHT_ONE))} GPU-hours that are charged or"
            f" set aside in {period} would be paid by nothing",
            hint="take less, or grant more first",
        )


def _require_leaf(connection: Reader | Writer, account: str) -> None:
    _require(connection, account)
    if queries.is_inner(connection, account):
        raise Refused(
            f"account {account!r} is an inner node, and GPU-time belongs to leaves",
            hint=f"name a leaf below it, or {own_path(account)} for what it owns itself;"
            " gpuledger usage --by account lists them",
        )


def _require(connection: Reader | Writer, account: str) -> None:
    if account == BOOK_POT_ACCOUNT:
        raise NotFound(f"account {account!r} does not exist", hint="it holds the pots of the book itself")
    queries.require_account(connection, account)


def booked_before(writer: Writer, book: str, key: str, command: Order) -> Booked | None:
    """Return what became of a command that was booked under a key before, or None.

    Raises:
        KeyReused: When the key stands for another command.
    """
    row = (
        driver(writer)
        .execute(
            "SELECT j.seq, j.recorded_at, j.type, j.body::text, t.body"
            " FROM ledger.identities AS i JOIN ledger.journal AS j USING (book, seq)"
            " LEFT JOIN side.texts AS t ON t.ref = j.extra_ref"
            " WHERE i.book = %s AND i.event_id = %s AND i.source = %s",
            (book, key, SOURCE),
        )
        .fetchone()
    )
    if row is None:
        return None
    seq, recorded_at, type_, body, texts = row
    if _said(decode_data(type_, body)) != _said(impersonal(command)) or not _typed_alike(
        texts, command.reason
    ):
        raise KeyReused(
            f"key {key!r} stands for another command of book {book!r}",
            hint=f"it ordered {_told(body)}; use a new key for a new command",
        )
    return Booked(seq, recorded_at, repeated=True)


def _said(order: Fact) -> dict[str, Any]:
    """Return what the caller said; who called, and what the books were at that moment, may differ in a retry."""
    fields: dict[str, Any] = msgspec.json.decode(data_json(order))
    return {name: value for name, value in fields.items() if name not in ("by", "limit", "effect")}


def _typed_alike(texts: bytes | None, reason: str | None) -> bool:
    """Compare a reason with the one kept aside; what was erased cannot be told from any other."""
    return texts is None or msgspec.json.decode(texts).get("reason") in (None, reason)


def _told(body: str) -> str:
    fields: dict[str, Any] = msgspec.json.decode(body)
    return ", ".join(
        f"{name} {fields[name]}" for name in ("account", "to", "period", "gpu_ms") if name in fields
    )
