"""Forgetting a person: the key behind the token goes, and the texts kept aside of that person's work and orders.

So do texts of others that name the person: why somebody else's run was stopped, or a host taken out.

The journal keeps the token, which says nothing about anybody without the key; chain, amounts and state
digest do not depend on either. What happens when an event of an erased person arrives again stands in
docs/decisions/0010 for work and in 0013 for orders.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.errors import NotFound
from gpuledger.kernel.near import did_you_mean
from gpuledger.ledger import quotations
from gpuledger.ledger.copying import driver
from gpuledger.ledger.quotations import Quotations, Waiting

# A person's rows: those that carry the token, and every other row of a workload that one of them names. A
# comment on the end of a run is as much its owner's as the name of the job. And why that person discarded a letter.
_OWN_ROWS = """
    WITH named AS (SELECT book, seq, workload, extra_ref FROM ledger.journal
                   WHERE %(token)s::text IN (body->>'user', body->>'by')),
    own AS (SELECT book, seq, extra_ref FROM named
            UNION
            SELECT j.book, j.seq, j.extra_ref FROM ledger.journal AS j
            JOIN (SELECT DISTINCT book, workload FROM named) AS n USING (book, workload)
            UNION
            SELECT stream, id, discarded_ref FROM ledger.dead_letters WHERE discarded_by = %(token)s::text)
"""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the erasure of a person comes to.

    Args:
        token: What stands for the person in the journal, before and after; None when nothing there does.
        rows: Journal rows that carry the token; they stay.
        texts: Texts kept aside of the person's work, orders and discards, and those of anybody that name the person;
            they go.
        dead_letters: Values that could not be read and in which the name occurs.
        waiting: Those of them that wait; they stay. The bytes of those that were read or discarded go.
        messages: Published messages in which the name occurs; their bytes go.
        unpublished: Messages in which the name occurs and that wait to be published; they stay.
    """

    token: str | None
    rows: int
    texts: int
    dead_letters: int = 0
    waiting: tuple[Waiting, ...] = ()
    messages: int = 0
    unpublished: int = 0


def plan(connection: Reader | Writer, name: str) -> Erasure:
    """Say what erasing a person would come to.

    Raises:
        NotFound: When the side store knows nobody of that name and no value quotes it; names those that are near.
    """
    return _planned(connection, name, quotations.find(connection, name))


def erase(writer: Writer, name: str) -> Erasure:
    """Erase a person in the caller's transaction; return what it came to.

    Raises:
        NotFound: When the side store knows nobody of that name and no value quotes it; names those that are near.
    """
    connection = driver(writer)
    quoted = quotations.find(writer, name)
    # Every append that names a person or puts a text aside writes to one of these. Those under way end
    # first, and none begins before the commit: nothing of the person slips in between count and deletion.
    connection.execute("LOCK TABLE side.user_keys, side.texts IN SHARE ROW EXCLUSIVE MODE")
    erased = _planned(writer, name, quoted)
    connection.execute(
        _OWN_ROWS + "DELETE FROM side.texts WHERE ref IN (SELECT extra_ref FROM own)", {"token": erased.token}
    )
    connection.execute("DELETE FROM side.user_keys WHERE name = %s", (name,))
    quotations.erase(writer, quoted)
    return erased


def _planned(connection: Reader | Writer, name: str, quoted: Quotations) -> Erasure:
    token = _find_token(connection, name)
    if token is None and not quoted:
        known = driver(connection).execute("SELECT name FROM side.user_keys")
        raise _unknown(name, [other for (other,) in known])
    row = driver(connection).execute(
        _OWN_ROWS + "SELECT (SELECT count(*) FROM named),"
        " (SELECT count(*) FROM side.texts WHERE ref IN (SELECT extra_ref FROM own) OR ref = ANY(%(quoting)s))",
        {"token": token, "quoting": quoted.texts},
    ).fetchone()  # fmt: skip
    assert row is not None  # noqa: S101 - counts always come back
    rows, texts = row
    return Erasure(
        token,
        rows,
        texts,
        dead_letters=len(quoted.ended) + len(quoted.waiting),
        waiting=tuple(quoted.waiting),
        messages=len(quoted.published),
        unpublished=len(quoted.unpublished),
    )


def _find_token(connection: Reader | Writer, name: str) -> str | None:
    row = driver(connection).execute(
        "SELECT token FROM side.user_keys WHERE name = %s", (name,)
    ).fetchone()  # fmt: skip
    return None if row is None else str(row[0])


def _unknown(name: str, known: Sequence[str]) -> NotFound:
    return NotFound(
        f"user {name!r} is not known here, or was erased",
        hint=did_you_mean(name, known, "names are as the source writes them", most=3),
    )
