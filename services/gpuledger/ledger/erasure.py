"""Forgetting a person: the key behind the token goes, and the texts kept aside of that person's work.

The journal keeps the token, which says nothing about anybody without the key; chain, amounts and state
digest do not depend on either. What happens when an event of an erased person arrives again stands in
docs/decisions, "An erased person's old event is a new row".
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.copying import driver

# A person's rows: those that carry the token, and every other row of a workload that one of them names. A
# comment on the end of a run is as much its owner's as the name of the job.
_OWN_ROWS = """
    WITH named AS (SELECT book, seq, workload, extra_ref FROM ledger.journal WHERE body->>'user' = %(token)s),
    own AS (SELECT book, seq, extra_ref FROM named
            UNION
            SELECT j.book, j.seq, j.extra_ref FROM ledger.journal AS j
            JOIN (SELECT DISTINCT book, workload FROM named) AS n USING (book, workload))
"""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the erasure of a person comes to.

    Args:
        token: What stands for the person in the journal, before and after.
        rows: Journal rows that carry the token; they stay.
        texts: Texts kept aside of the person's work; they go.
        dead_letters: Values that could not be read and in which the name occurs; they stay, because a
            short name occurs by chance: a person looks at them.
    """

    token: str
    rows: int
    texts: int
    dead_letters: int


def plan(connection: Reader | Writer, name: str) -> Erasure:
    """Say what erasing a person would come to.

    Raises:
        NotFound: When the side store knows nobody of that name; names those that are near.
    """
    token = _token(connection, name)
    row = driver(connection).execute(
        _OWN_ROWS + "SELECT (SELECT count(*) FROM named),"
        " (SELECT count(*) FROM side.texts WHERE ref IN (SELECT extra_ref FROM own)),"
        " (SELECT count(*) FROM ledger.dead_letters WHERE position(%(name)s::bytea IN raw) > 0)",
        {"token": token, "name": name.encode()},
    ).fetchone()  # fmt: skip
    assert row is not None  # noqa: S101 - counts always come back
    return Erasure(token, *row)


def erase(writer: Writer, name: str) -> Erasure:
    """Erase a person in the caller's transaction; return what it came to.

    Raises:
        NotFound: When the side store knows nobody of that name; names those that are near.
    """
    connection = driver(writer)
    # Every append that names a person or puts a text aside writes to one of these. Those under way end
    # first, and none begins before the commit: nothing of the person slips in between count and deletion.
    connection.execute("LOCK TABLE side.user_keys, side.texts IN SHARE ROW EXCLUSIVE MODE")
    erased = plan(writer, name)
    connection.execute(
        _OWN_ROWS + "DELETE FROM side.texts WHERE ref IN (SELECT extra_ref FROM own)", {"token": erased.token}
    )
    connection.execute("DELETE FROM side.user_keys WHERE name = %s", (name,))
    return erased


def _token(connection: Reader | Writer, name: str) -> str:
    row = driver(connection).execute(
        "SELECT token FROM side.user_keys WHERE name = %s", (name,)
    ).fetchone()  # fmt: skip
    if row is None:
        raise _unknown(
            name, [known for (known,) in driver(connection).execute("SELECT name FROM side.user_keys")]
        )
    return str(row[0])


def _unknown(name: str, known: Sequence[str]) -> NotFound:
    near = difflib.get_close_matches(name, known, n=3)
    return NotFound(
        f"user {name!r} is not known here, or was erased",
        hint=f"did you mean {', '.join(near)}?" if near else "names are as the source writes them",
    )
