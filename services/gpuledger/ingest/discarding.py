"""Dead letters that nobody needs: the row stays, with who decided so, when and why; name and words are erasable."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import Part
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger.copying import driver
from gpuledger.ledger.identity import keys_of, names_of, put_aside


class Discarded(NamedTuple):
    """What a discard changed.

    Args:
        discarded: Letters that waited until now.
        repeated: Letters that were discarded before; who did so then, and why, stays.
    """

    discarded: int
    repeated: int


class Decision(NamedTuple):
    """Who discarded a letter and why.

    Args:
        by: The name; the token once the person was erased.
        reason: The words; None once they were erased.
    """

    by: str
    reason: str | None


def discard(writer: Writer, ids: Sequence[int], by: str, reason: str, now: dt.datetime) -> Discarded:
    """Let letters wait no longer; nothing of them is deleted.

    Args:
        writer: The transaction.
        ids: The letters.
        by: Who decides so.
        reason: Why, in words; kept aside, where the erasure of that person finds them.
        now: When.

    Raises:
        NotFound: When there is no letter of a number.
        Refused: When no reason is given, or a letter was read after all.
    """
    if not reason.strip() or "\0" in reason:
        raise Refused("--reason: says nothing", hint="say why nobody needs the records")
    connection = driver(writer)
    rows = connection.execute(
        "SELECT id, resolved_at, discarded_at FROM ledger.dead_letters WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
        (list(ids),),
    ).fetchall()
    if missing := sorted(set(ids) - {id_ for id_, _, _ in rows}):
        raise NotFound(
            f"there is no dead letter {missing[0]}", hint="gpuledger dlq list --state all shows their numbers"
        )
    for id_, resolved_at, _ in rows:
        if resolved_at is not None:
            raise Refused(
                f"dead letter {id_} was read after all at {resolved_at}: there is nothing to discard",
                hint=f"gpuledger dlq show {id_}",
            )
    fresh = [id_ for id_, _, discarded_at in rows if discarded_at is None]
    if fresh:
        # No name stands behind what the system has no name for.
        token = by if by in set(Part) else keys_of(writer, [by])[by].token
        connection.execute(
            "UPDATE ledger.dead_letters SET discarded_at = %s, discarded_by = %s, discarded_ref = %s"
            " WHERE id = ANY(%s)",
            (now, token, put_aside(writer, {"reason": reason}), fresh),
        )
    return Discarded(len(fresh), len(rows) - len(fresh))


def find_decision(reader: Reader | Writer, id_: int) -> Decision | None:
    """Return who discarded a letter and why; None when nobody did."""
    row = driver(reader).execute(
        "SELECT discarded_by, t.body FROM ledger.dead_letters LEFT JOIN side.texts AS t ON t.ref = discarded_ref"
        " WHERE id = %s AND discarded_at IS NOT NULL",
        (id_,),
    ).fetchone()  # fmt: skip
    if row is None:
        return None
    token, body = row
    reason = None if body is None else msgspec.json.decode(body)["reason"]
    return Decision(names_of(reader, [token]).get(token, token), reason)
