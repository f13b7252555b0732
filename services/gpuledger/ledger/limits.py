"""What inner nodes of the tree cap: a grant on an account with children limits what its subtree may spend.

available(node) = min over the node and its ancestors of (limit - charges - holds of the subtree); the
node whose room is smallest binds (DESIGN section 7). Credits give room back.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.accounts import lineage
from gpuledger.ledger.copying import driver


class Limit(NamedTuple):
    """The cap of one inner node on one cluster for one period; amounts in gpu_ms."""

    cluster: str
    period: str
    account: str


class Binding(NamedTuple):
    """What an account may still spend, and the account whose room that is."""

    available_gpu_ms: int
    account: str


def limits(reader: Reader | Writer, vector: Mapping[str, int] | None = None) -> dict[Limit, int]:
    """Return every limit in force; several for one node and period add up, what was taken back deducted.

    Args:
        reader: A snapshot.
        vector: Book -> sequence to read up to; now unless given.
    """
    books = None if vector is None else list(vector)
    rows = driver(reader).execute(
        "SELECT j.book, body->>'period', body->>'account', sum((body->>'gpu_ms')::bigint)::bigint"
        " FROM ledger.journal AS j"
        " LEFT JOIN unnest(%(books)s::text[], %(seqs)s::bigint[]) AS v (book, seq) ON v.book = j.book"
        " WHERE workload IS NULL AND type IN ('budget.granted', 'adjustment.posted') AND (body->>'limit')::boolean"
        " AND (%(books)s::text[] IS NULL OR j.seq <= v.seq) GROUP BY 1, 2, 3",
        {"books": books, "seqs": None if vector is None else list(vector.values())},
    )
    return {Limit(book, period, account): amount for book, period, account, amount in rows}


def spent_below(leaves: Iterable[tuple[Limit, int]]) -> dict[Limit, int]:
    """Return node -> what its whole subtree has spent, from what each leaf has."""
    spent: dict[Limit, int] = {}
    for leaf, amount in leaves:
        for node in lineage(leaf.account):
            key = leaf._replace(account=node)
            spent[key] = spent.get(key, 0) + amount
    return spent


def binding(own: int, account: Limit, caps: Mapping[Limit, int], spent: Mapping[Limit, int]) -> Binding:
    """Return the smallest room on the path from the account up; of equal ones the account's own, then the nearest.

    Args:
        own: What the account itself has left.
        account: The account, with its cluster and period.
        caps: Limits by node.
        spent: Charges and holds, net of credits, of each node's subtree.
    """
    found = Binding(own, account.account)
    for node in reversed(list(lineage(account.account))):
        key = account._replace(account=node)
        if key in caps and (room := caps[key] - spent.get(key, 0)) < found.available_gpu_ms:
            found = Binding(room, node)
    return found
