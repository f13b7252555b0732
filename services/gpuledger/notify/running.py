"""Notice what is new, and tell who is still to be told. Nothing is sent unless the caller says so."""

import datetime as dt
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import reading, writing
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, iso
from gpuledger.ledger.queries import calendar as calendar_of
from gpuledger.notify import outbox
from gpuledger.notify.following import following
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.outbox import Waiting
from gpuledger.notify.payloads import Trial
from gpuledger.notify.recipients import Recipients, Target
from gpuledger.notify.rendering import one_line
from gpuledger.notify.sending import Message, Send, Undelivered
from gpuledger.notify.state import read_state
from gpuledger.notify.texts import text_of
from gpuledger.settings import Settings

MOST = 500
"""Deliveries of one run; the next run goes on."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Notifier:
    """Who tells whom of what.

    Args:
        engine: The database.
        recipients: Who is told.
        senders: ``webhook`` and ``mail`` -> what brings notices there.
        clock: The present.
        default: The calendar before the organisation has set one.
    """

    engine: sa.Engine
    recipients: Recipients
    senders: Mapping[str, Send]
    clock: Clock
    default: Calendar

    @property
    def targets(self) -> dict[str, Target]:
        """All targets by name."""
        return {each.name: each for each in self.recipients.targets}

    def awake(self, at: dt.datetime, timezone: str) -> list[str]:
        """Return the names of the targets that may be sent something at an instant."""
        return [each.name for each in self.recipients.targets if not each.is_quiet(at, timezone)]


@dataclass(slots=True)
class Told:
    """What came of one run.

    Args:
        noticed: What is new, with the targets that it is for.
        sent: Notice and target of what was taken.
        failed: Notice, target and what went wrong.
        waiting: What is due and was not tried: it is quiet there, or this is a dry run.
        is_sent: Whether this was no dry run.
    """

    noticed: list[tuple[Notice, list[str]]] = field(default_factory=list)
    sent: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    is_sent: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "sent_for_real": self.is_sent,
            "noticed": [
                {
                    "id": notice.id,
                    "type": notice.kind.value,
                    "cluster": notice.cluster,
                    "account": notice.account,
                    "subject": one_line(text_of(notice.data).subject),
                    "overtaken": notice.is_overtaken,
                    "targets": targets,
                }
                for notice, targets in self.noticed
            ],
            "sent": [{"id": notice, "target": target} for notice, target in self.sent],
            "failed": [
                {"id": notice, "target": target, "said": said} for notice, target, said in self.failed
            ],
            "waiting": [{"id": each.notice, "target": each.target} for each in self.waiting],
        }


def notifier_of(settings: Settings, engine: sa.Engine, recipients: Recipients, clock: Clock) -> Notifier:
    """Return who tells the recipients, as the settings say.

    Raises:
        Refused: When the mail server's settings do not fit.
    """
    # Who only looks, or only writes down, needs neither client.
    from gpuledger.notify.mails import MailSender, server_of
    from gpuledger.notify.webhooks import WebhookSender

    senders: dict[str, Send] = {"webhook": WebhookSender()}
    server = server_of(settings)
    if server is not None:
        senders["mail"] = MailSender(server)
    return Notifier(engine, recipients, senders, clock, settings.calendar)


def run(notifier: Notifier, *, send: bool) -> Told:
    """Notice what is new; write it down and tell who is to be told, or only say what would be done.

    Args:
        notifier: Who tells whom.
        send: Whether anything is written and sent.

    Raises:
        Unavailable: When the database cannot be used now.
    """
    told = Told(is_sent=send)
    now = notifier.clock.now()
    calendar, found = _noticed(notifier, now)
    if not send:
        with writing(notifier.engine) as writer:  # the writer alone may read the outbox; nothing is written
            new = outbox.unknown(writer, found)
            told.waiting = outbox.due(writer, notifier.targets, now)
    else:
        with writing(notifier.engine) as writer:
            new = outbox.record(writer, found, notifier.recipients, now)
            outbox.give_up_stale(writer, now)
    told.noticed = [(notice, outbox.told(notice, notifier.recipients)) for notice in new]
    if send:
        _send_due(notifier, calendar.timezone, told)
    return told


def pending(notifier: Notifier) -> list[str]:
    """Return a line for each notice that is new and for each delivery that is due and may be made; none: all is told.

    Raises:
        Unavailable: When the database cannot be used now.
    """
    now = notifier.clock.now()
    calendar, found = _noticed(notifier, now)
    with writing(notifier.engine) as writer:  # the writer alone may read the outbox
        new = [notice.id for notice in outbox.unknown(writer, found)]
        due = outbox.due(writer, notifier.awake(now, calendar.timezone), now)
    return sorted(new) + sorted(f"{each.notice} {each.target} {each.attempts}" for each in due)


def note(engine: sa.Engine, recipients: Recipients, notice: Notice, clock: Clock) -> bool:
    """Write down what somebody came upon; say whether it was new. The next run tells whom it is for.

    Raises:
        Unavailable: When the database cannot be used now.
    """
    with writing(engine) as writer:
        return bool(outbox.record(writer, [notice], recipients, clock.now()))


def _noticed(notifier: Notifier, now: dt.datetime) -> tuple[Calendar, list[Notice]]:
    """Return the organisation's calendar, and every notice that follows from the books and the warehouse."""
    with reading(notifier.engine) as reader:
        calendar = calendar_of(reader, notifier.default)
        state = read_state(reader, calendar, now, notifier.recipients.nodes())
        return calendar, following(state, notifier.recipients.thresholds, now)


def trial(target: str, by: str, clock: Clock) -> Message:
    """Return a message that says nothing but that it arrives; it is written down nowhere.

    Args:
        target: Whom it is for.
        by: Who tries.
        clock: The present.
    """
    now = clock.now()
    notice = Notice(Kind.TEST, (target, iso(now)), Trial(by=by))
    return Message(notice.id, notice.body(now), now)


def _send_due(notifier: Notifier, timezone: str, told: Told) -> None:
    """Tell what is due, one delivery in a transaction of its own: a process that dies here leaves it due."""
    for _ in range(MOST):
        now = notifier.clock.now()
        awake = notifier.awake(now, timezone)
        with writing(notifier.engine) as writer, outbox.claimed(writer, awake, now) as delivery:
            if delivery is None:
                told.waiting = outbox.due(writer, notifier.targets, now)
                return
            fault = _try(notifier, delivery.target, Message(delivery.notice, delivery.body, now))
            ended = notifier.clock.now()
            if fault is None:
                outbox.mark_sent(writer, delivery, ended)
                told.sent.append((delivery.notice, delivery.target))
            else:
                outbox.mark_failed(writer, delivery, fault.message, ended, is_final=fault.is_final)
                told.failed.append((delivery.notice, delivery.target, fault.message))


def _try(notifier: Notifier, target: str, message: Message) -> Undelivered | None:
    """Bring one message to a target; return why it was not taken. One that cannot be sent keeps no other waiting."""
    try:
        send_to(notifier, target, message)
    except Undelivered as error:
        _LOG.warning("%s to %s: %s", message.id, target, error.message)
        return error
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one, the others are told
        where = "".join(traceback.format_tb(error.__traceback__))  # without its words, which could be secrets
        _LOG.error("%s to %s: %s\n%s", message.id, target, type(error).__name__, where)
        return Undelivered(f"a fault of gpuledger: {type(error).__name__}")
    return None


def send_to(notifier: Notifier, target: str, message: Message) -> None:
    """Bring one message to a target.

    Raises:
        Undelivered: When it was not taken.
    """
    send = notifier.senders.get(target.partition("/")[0])
    if send is None:
        raise Undelivered("no mail server is set: GPULEDGER_SMTP_HOST")
    send(notifier.targets[target], message)
