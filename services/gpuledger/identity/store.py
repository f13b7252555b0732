"""Tokens as they are kept: made, shown to whoever manages them, recognised, replaced, revoked."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuledger.database.engine import Reader, Writer
from gpuledger.identity import secrets
from gpuledger.identity.caller import Caller, Scope, check_scope
from gpuledger.identity.roles import Role
from gpuledger.identity.tables import tokens
from gpuledger.kernel.clock import iso
from gpuledger.kernel.errors import NotFound, Refused, Unidentified

NAME_LENGTH_MAX = 100

LIFETIME_MAX = dt.timedelta(days=3660)

NOTED_EVERY = dt.timedelta(minutes=1)
"""Last use is kept to the minute: a scheduler that asks in its loop is not worth a write each time."""

_BY_ID = "SELECT * FROM identity.tokens WHERE id = %s"
"""Written out: each request asks it, and composing a statement takes longer than the database does."""

_HINT = "gpuledger token list shows them; an admin of the ledger's host makes one: gpuledger token create"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as its managers see it.

    Args:
        id: The public part of its text.
        name: How orders and logs name who uses it.
        role: What they may do.
        scope: Where they may do it.
        expires_at: First instant at which it is no good.
        replaces: The token that it was made for.
        last_used_at: To the minute; None when never.
    """

    id: str
    name: str
    role: Role
    scope: Scope
    created_at: dt.datetime
    created_by: str
    expires_at: dt.datetime
    replaces: str | None
    revoked_at: dt.datetime | None
    revoked_by: str | None
    last_used_at: dt.datetime | None

    def is_good(self, now: dt.datetime) -> bool:
        """Say whether it still opens the door."""
        return self.revoked_at is None and now < self.expires_at

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "id": self.id,
            "name": self.name,
            "role": self.role.value,
            "subtree": self.scope.subtree,
            "clusters": list(self.scope.clusters),
            "created_at": iso(self.created_at),
            "created_by": self.created_by,
            "expires_at": iso(self.expires_at),
            "replaces": self.replaces,
            "revoked_at": self.revoked_at and iso(self.revoked_at),
            "revoked_by": self.revoked_by,
            "last_used_at": self.last_used_at and iso(self.last_used_at),
        }


@dataclass(frozen=True, slots=True)
class Order:
    """What a new token shall be.

    Args:
        lifetime: How long it is good for.
        by: Who has it made.
    """

    name: str
    role: Role
    scope: Scope
    lifetime: dt.timedelta
    by: str


def create(writer: Writer, order: Order, now: dt.datetime, replaces: str | None = None) -> tuple[str, Token]:
    """Make a token; return its text, which nobody can be shown again, and what is kept of it.

    Raises:
        Refused: When its name, lifetime or scope cannot be.
    """
    if not 0 < len(order.name) <= NAME_LENGTH_MAX or not order.name.isprintable():
        raise Refused(
            f"a token's name has 1 to {NAME_LENGTH_MAX} printable characters, not {len(order.name)}",
            hint="name who or what will use it",
        )
    if not dt.timedelta() < order.lifetime <= LIFETIME_MAX:
        raise Refused(
            f"a token is good for {order.lifetime}", hint=f"above zero, and up to {LIFETIME_MAX.days} days"
        )
    check_scope(order.role, order.scope)
    made = secrets.make()
    writer.execute(
        tokens.insert().values(
            id=made.id,
            digest=made.digest,
            name=order.name,
            role=order.role.value,
            subtree=order.scope.subtree,
            clusters=list(order.scope.clusters),
            created_at=now,
            created_by=order.by,
            expires_at=now + order.lifetime,
            replaces=replaces,
        )
    )
    return made.text, get(writer, made.id)


def every(reader: Reader | Writer) -> list[Token]:
    """Return all tokens there ever were, the oldest first."""
    rows = reader.execute(sa.select(tokens).order_by(tokens.c.created_at, tokens.c.id))
    return [_token(row) for row in rows]


def get(reader: Reader | Writer, token: str) -> Token:
    """Return one token.

    Raises:
        NotFound: When no token has this id.
    """
    row = reader.execute(sa.select(tokens).where(tokens.c.id == token)).one_or_none()
    if row is None:
        raise NotFound(f"no token has the id {token!r}", hint="gpuledger token list shows them")
    return _token(row)


def recognise(reader: Reader, text: str, now: dt.datetime) -> tuple[Caller, bool]:
    """Return who shows a token, and whether its use is to be noted.

    Every refusal reads alike, whichever part is wrong: who guesses learns nothing.

    Raises:
        Unidentified: When it is no token of this ledger, or no longer good.
    """
    shown = secrets.read(text)
    row = None if shown is None else reader.exec_driver_sql(_BY_ID, (shown.id,)).one_or_none()
    kept = None if row is None else bytes(row.digest)
    if shown is None or not secrets.is_proven(shown, kept) or row is None:
        raise Unidentified("the token is not one of this ledger's", hint=_HINT)
    token = _token(row)
    if not token.is_good(now):  # it was theirs, so they may know why
        ended = "revoked" if token.revoked_at else "good until " + iso(token.expires_at)
        raise Unidentified(f"the token {token.id} ({token.name}) was {ended}", hint=_HINT)
    noted = token.last_used_at
    return Caller(token.name, token.role, token.scope, token.id), noted is None or now - noted >= NOTED_EVERY


def note_use(writer: Writer, token: str, now: dt.datetime) -> None:
    """Keep when a token was used last; of many requests at once the first notes it for all."""
    is_due = sa.or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= now - NOTED_EVERY)
    writer.execute(tokens.update().where(tokens.c.id == token, is_due).values(last_used_at=now))


def rotate(
    writer: Writer, token: str, *, overlap: dt.timedelta, lifetime: dt.timedelta, by: str, now: dt.datetime
) -> tuple[str, Token]:
    """Make a token in place of another, which stays good for a while so that nothing stands still meanwhile.

    Args:
        writer: A transaction.
        token: The id of the old one.
        overlap: How long the old one stays good, at most; zero ends it now.
        lifetime: How long the new one is good for.
        by: Who has it made.
        now: The present.

    Raises:
        NotFound: When no token has this id.
        Refused: When the old one is no longer good, or the overlap lies below zero.
    """
    if overlap < dt.timedelta():
        raise Refused(
            f"the overlap is {overlap}", hint="zero, or the time that you need to hand out the new one"
        )
    # Whoever revokes it at this moment comes first or second, and is not overlooked.
    writer.execute(sa.select(tokens.c.id).where(tokens.c.id == token).with_for_update())
    old = get(writer, token)
    if not old.is_good(now):
        raise Refused(f"the token {token} is no longer good", hint="gpuledger token create makes a new one")
    made = create(writer, Order(old.name, old.role, old.scope, lifetime, by), now, replaces=old.id)
    until = min(old.expires_at, now + overlap)
    writer.execute(tokens.update().where(tokens.c.id == old.id).values(expires_at=until))
    return made


def revoke(writer: Writer, token: str, *, by: str, now: dt.datetime) -> Token:
    """End a token at once; return it. One that was revoked before stays as it is.

    Raises:
        NotFound: When no token has this id.
    """
    if get(writer, token).revoked_at is None:
        writer.execute(tokens.update().where(tokens.c.id == token).values(revoked_at=now, revoked_by=by))
    return get(writer, token)


def _token(row: "sa.Row[Any]") -> Token:
    return Token(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        scope=Scope(row.subtree, tuple(row.clusters)),
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        replaces=row.replaces,
        revoked_at=row.revoked_at,
        revoked_by=row.revoked_by,
        last_used_at=row.last_used_at,
    )
