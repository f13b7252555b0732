"""Making, discussing and deciding proposals: commands on the book that a proposal belongs to.

What is approved is booked with its approval, in one transaction, by the checks that the same order would meet if it
were given by itself: a proposal is never half carried out.
"""

import datetime as dt
import hashlib
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, proposal
from gpuledger.events.envelope import ORG_BOOK, book_of, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Conflict, Forbidden, Refused
from gpuledger.kernel.rollover import written
from gpuledger.ledger import queries, store
from gpuledger.ledger.append import append
from gpuledger.ledger.attempts import booked
from gpuledger.ledger.commands import SOURCE, Booked, booked_before, check, check_key
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.proposal_effects import effect_of, effective_s
from gpuledger.ledger.proposals import Proposal, State, Step, proposals
from gpuledger.ledger.ticking import catch_up

ORDERED = "gpuledger/proposals"
"""Says what an approval orders; no key of anybody's can stand in its way."""

CHANGES_MAX = 1000
"""The most changes of one proposal."""

PENDING_MAX = 1000
"""The most proposals of one book that may wait for an answer: each reader looks at all of them."""

PENDING_OWN_MAX = 50
"""The most of them that are one person's: nobody takes the place of all others."""

COMMENTS_OWN_MAX = 100
"""The most that one person says of one proposal: it is kept for ever, and told with each list."""


_LATEST = dt.datetime(2101, 1, 1, tzinfo=dt.UTC)
"""From then on there are no periods."""


class _Effective(NamedTuple):
    """What an approval orders, and from when on, in seconds since the epoch."""

    at_s: int
    order: budget.ShareSet | budget.Granted | budget.Transferred


def name_for(book: str, key: str) -> str:
    """Return the name of the proposal that a key makes: the same each time that the order is repeated."""
    return "p-" + hashlib.sha256(f"{book}/{key}".encode()).hexdigest()[:12]


def carry_out(
    engine: sa.Engine,
    step: Step,
    *,
    key: str,
    clock: Clock,
    default_calendar: Calendar,
    by_another: bool = True,
) -> Booked:
    """Book a step of a proposal in a transaction of its own; see ``take``.

    Raises:
        Unavailable: When the database cannot be reached.
    """

    def give(writer: Writer) -> Booked:
        calendar = queries.calendar(writer, default_calendar)
        done = take(writer, step, key=key, clock=clock, calendar=calendar, by_another=by_another)
        if isinstance(step, proposal.Approved) and step.cluster is not None:
            open_periods(writer, step.cluster, clock=clock, calendar=calendar)
        return done

    return booked(engine, book_of(step), give, clock=clock, people=[step.by])


def take(
    writer: Writer, step: Step, *, key: str, clock: Clock, calendar: Calendar, by_another: bool = True
) -> Booked:
    """Check a step against the proposal as it stands, and journal it; an approval with all that it orders.

    Args:
        writer: A transaction of its own; the caller commits it.
        step: What is proposed, said or decided.
        key: The idempotency key, unique among the commands of the book.
        clock: Says when it takes effect.
        calendar: The organisation's days.
        by_another: Whether who proposed it may not approve it.

    Raises:
        Conflict: When the proposal has been decided before.
        Forbidden: When it is not for who orders it to say that.
        KeyReused: When the key stands for another command.
        NotFound: When there is no such proposal, account or cluster.
        Refused: When the step asks for what cannot be.
    """
    check_key(key)
    book = book_of(step)
    if book != ORG_BOOK:
        queries.require_cluster(writer, book)
    store.lock_book(writer, book)
    if (before := booked_before(writer, book, key, step)) is not None:
        return before
    now_s = seconds(clock.now())
    ordered: list[_Effective] = []
    if isinstance(step, proposal.Proposed):
        _check_new(proposals(writer), step)
        check_proposed(writer, step, now_s=now_s, calendar=calendar)
        effect = effect_of(writer, step, now_s=now_s, calendar=calendar)
        step = msgspec.structs.replace(step, effect=effect)
    else:
        made = _standing(proposals(writer, [book]), step)
        _check_step(made, step, by_another=by_another)
        if isinstance(step, proposal.Approved):
            ordered = _ordered(writer, made.asked, step.by, now_s)
            if made.asked.transfers:  # what has lapsed is not there to be given
                catch_up(writer, book, now_s, clock=clock, calendar=calendar)
    said, _ = make(id=key, source=SOURCE, at_s=now_s, data=step)
    head = append(writer, book, [said], clock=clock, calendar=calendar).head
    assert head is not None  # noqa: S101 - a new row moved it
    for n, (at_s, order) in enumerate(ordered, start=1):
        if not isinstance(order, budget.ShareSet):  # each meets what those before it left
            check(writer, order, now_s=now_s, calendar=calendar)
        event, _ = make(id=f"{step.proposal}/{n}", source=ORDERED, at_s=at_s, data=order)
        append(writer, book, [event], clock=clock, calendar=calendar)
    return Booked(head.last_seq, head.last_recorded_at, repeated=False)


def check_proposed(
    connection: Reader | Writer, asked: proposal.Proposed, *, now_s: int, calendar: Calendar
) -> None:
    """Refuse a proposal that could not be approved as the book stands.

    Raises:
        NotFound: When an account or the cluster does not exist.
        Refused: When it asks for nothing, for too much, or for what cannot be; says why.
    """
    changes = len(asked.shares) + len(asked.grants) + len(asked.transfers)
    if not 0 < changes <= CHANGES_MAX:
        raise Refused(
            f"a proposal holds 1 to {CHANGES_MAX} changes, not {changes}", hint="say what is to change"
        )
    if not asked.reason.strip():
        raise Refused("a proposal needs a reason", hint="say why it should be approved")
    if asked.shares and asked.cluster is not None:
        raise Refused(
            f"shares hold on every cluster, and this proposal is about {asked.cluster}",
            hint="propose shares without a cluster, and GPU-time in a proposal of its own",
        )
    if (asked.grants or asked.transfers) and asked.cluster is None:
        raise Refused(
            "GPU-time belongs to a cluster, and this proposal names none",
            hint="name the cluster, and propose shares in a proposal of their own",
        )
    if asked.effective_at is not None:
        _check_effective(asked, asked.effective_at)
    named = [change.account for change in asked.shares]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise Refused(f"shares: {', '.join(twice)} stands twice", hint="say one share of each account")
    for account in named:
        queries.require_account(connection, account)
    for _, order in _ordered(connection, asked, asked.by, now_s):
        if not isinstance(order, budget.ShareSet):
            check(connection, order, now_s=now_s, calendar=calendar)


def _check_effective(asked: proposal.Proposed, at: dt.datetime) -> None:
    if not asked.shares:
        raise Refused(
            "effective_at: GPU-time is moved when it is approved", hint="say in which period it is to be used"
        )
    if at >= _LATEST:
        raise Refused(
            f"effective_at: {at.isoformat()} is out of all bounds",
            hint="the ledger keeps time up to the year 2100",
        )


def _check_new(before: list[Proposal], asked: proposal.Proposed) -> None:
    """Refuse a name that any book has, for it alone says which is decided; and more than can be answered."""
    if any(made.asked.proposal == asked.proposal for made in before):
        raise Conflict(
            f"there is a proposal {asked.proposal!r} already",
            hint="repeat it under its key, or take a new key",
        )
    waiting = [made for made in before if made.book == book_of(asked) and made.state is State.PENDING]
    if len(waiting) >= PENDING_MAX:
        raise Refused(
            f"{PENDING_MAX} proposals wait for an answer", hint="decide some of them, or withdraw them, first"
        )
    if sum(made.asked.by == asked.by for made in waiting) >= PENDING_OWN_MAX:
        raise Refused(
            f"{PENDING_OWN_MAX} proposals of {asked.by} wait for an answer",
            hint="withdraw some of them, or ask in one proposal for several changes",
        )


def _standing(found: list[Proposal], step: Step) -> Proposal:
    for made in found:
        if made.asked.proposal == step.proposal:
            return made
    raise Conflict(
        f"there is no proposal {step.proposal!r} on {book_of(step)}", hint="look again and repeat it"
    )


def _check_step(made: Proposal, step: Step, *, by_another: bool) -> None:
    """Refuse what cannot be said of a proposal any more, or not by this person."""
    if isinstance(step, proposal.Commented):
        if not step.reason.strip():
            raise Refused("a comment says something", hint="write what there is to say")
        if sum(said.by == step.by for said in made.comments) >= COMMENTS_OWN_MAX:
            raise Refused(
                f"{step.by} has said {COMMENTS_OWN_MAX} things of {step.proposal}",
                hint="decide it, or talk about it elsewhere",
            )
        return
    if made.state is not State.PENDING:
        raise Conflict(f"{step.proposal} was {made.state} already", hint="propose anew what is to change now")
    is_own = step.by == made.asked.by
    if isinstance(step, proposal.Withdrawn) and not is_own:
        raise Forbidden(
            f"{step.proposal} was proposed by somebody else", hint="reject it, or ask them to withdraw it"
        )
    if isinstance(step, proposal.Approved) and is_own and by_another:
        raise Forbidden(
            f"{step.proposal} was proposed by {step.by}, and another person has to approve it",
            hint="ask somebody who may change these accounts",
        )


def _ordered(connection: Reader | Writer, asked: proposal.Proposed, by: str, now_s: int) -> list[_Effective]:
    """Return what the approval of a proposal orders, and from when on."""
    reason = budget.Word.APPROVED.value
    shares = [
        _Effective(
            effective_s(asked, now_s),
            budget.ShareSet(account=change.account, share=change.share, reason=reason, by=by),
        )
        for change in asked.shares
    ]
    if asked.cluster is None:
        return shares
    moved: list[budget.Granted | budget.Transferred] = [
        budget.Granted(
            account=change.account, cluster=asked.cluster, period=change.period, gpu_ms=change.gpu_ms,
            priority=change.priority, expires_at=change.expires_at, rollover=written(change.rollover),
            limit=queries.is_inner(connection, change.account), reason=reason, by=by,
        )
        for change in asked.grants
    ]  # fmt: skip
    moved += [
        budget.Transferred(
            account=change.account, to=change.to, cluster=asked.cluster, period=change.period,
            gpu_ms=change.gpu_ms, reason=reason, by=by,
        )
        for change in asked.transfers
    ]  # fmt: skip
    return [*shares, *(_Effective(now_s, order) for order in moved)]
