"""Opening a budget period: leaves without an explicit grant get their share of installed capacity.

A fact's period opens by itself, once, as a journalled command with its amounts in it, so that a
later change of shares or inventory never moves an amount that was granted.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import PeriodGrant, PeriodOpened
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.kernel.accounts import (
    BOOK_POT_ACCOUNT,
    lineage,
    owner_of,
    parent,
    share_unless_set,
)
from gpuledger.kernel.amounts import GPU_MILLI, WEIGHT_ONE, gpu_hours
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.portions import members
from gpuledger.ledger import queries
from gpuledger.ledger.append import append
from gpuledger.ledger.as_of import Vector, said, seq_of
from gpuledger.ledger.charges import WEIGHTED
from gpuledger.ledger.copying import driver
from gpuledger.ledger.store import LEGS, lock_book

SOURCE = "gpuledger/periods"


def open_periods(writer: Writer, cluster: str, *, clock: Clock, calendar: Calendar) -> list[str]:
    """Open every period of a cluster that has movements and was not opened yet; return their keys.

    Nothing happens while the cluster has no installed capacity in a period: default grants need it.
    """
    if not _unopened(writer, cluster):
        return []
    # Ask again under the book's lock: another worker may be opening the same periods.
    lock_book(writer, cluster)
    opened = []
    for period in _unopened(writer, cluster):
        fact = opening(writer, cluster, period, calendar)
        if fact.installed_gpu_ms > 0:
            _journal(writer, fact, clock=clock, calendar=calendar)
            opened.append(period)
    return opened


def open_period(
    writer: Writer, cluster: str, period: str, *, clock: Clock, calendar: Calendar
) -> PeriodOpened:
    """Open one period that need not have movements yet, with its default grants.

    Raises:
        Refused: When it is open already, or the cluster has no installed capacity in it.
        NotFound: When the cluster has no book.
    """
    queries.require_cluster(writer, cluster)
    lock_book(writer, cluster)
    check_opening(writer, cluster, period)
    fact = opening(writer, cluster, period, calendar)
    if fact.installed_gpu_ms == 0:
        raise Refused(
            f"{cluster} has no GPU installed in {period}, so there is nothing to grant",
            hint="gpuledger inventory apply FILE says what is installed, and from when",
        )
    _journal(writer, fact, clock=clock, calendar=calendar)
    return fact


def is_opened(connection: Reader | Writer, cluster: str, period: str, seq: int | None = None) -> bool:
    """Tell whether a period has had its default grants, as of a row of the book; now unless given."""
    row = driver(connection).execute(
        "SELECT 1 FROM ledger.periods WHERE book = %s AND period = %s AND opened_seq <= coalesce(%s, opened_seq)",
        (cluster, period, seq),
    ).fetchone()  # fmt: skip
    return row is not None


def check_opening(connection: Reader | Writer, cluster: str, period: str) -> None:
    """Refuse to open a period twice.

    Raises:
        Refused: When it is open.
    """
    row = driver(connection).execute(
        "SELECT opened_seq, state FROM ledger.periods WHERE book = %s AND period = %s", (cluster, period)
    ).fetchone()  # fmt: skip
    if row is not None and row[1] != "open":
        raise Refused(
            f"{period} of {cluster} is {row[1]}", hint="gpuledger close reopen takes bookings again"
        )
    if row is not None and row[0] is not None:
        raise Refused(
            f"{period} of {cluster} was opened before, by row {row[0]}",
            hint="gpuledger budget grant gives more within it",
        )


def opening(
    connection: Reader | Writer,
    cluster: str,
    period: str,
    calendar: Calendar,
    vector: Vector | None = None,
) -> PeriodOpened:
    """Return the command that opens a period: what is installed, divided by the shares of its first instant.

    Args:
        connection: A transaction.
        cluster: The cluster.
        period: The period.
        calendar: The organisation's days.
        vector: Book -> the row up to which it is read; now unless given.

    Raises:
        Refused: When the period is not of the form ``YYYY-MM``.
    """
    start_s, end_s = calendar.period_bounds_s(period)
    seq, org_seq = seq_of(vector, cluster), seq_of(vector, ORG_BOOK)
    clusters = queries.clusters(connection) if vector is None else sorted(vector.keys() - {ORG_BOOK})
    paths = members(cluster, queries.account_paths(connection, org_seq), clusters)
    held = _installed(connection, cluster, start_s, end_s, seq=seq)
    card = queries.rate_card(connection, org_seq)
    # Budgets are in weighted units: what is installed is worth what it would be charged for.
    worth = sum(card.weighted(*h) for h in held) // WEIGHT_ONE
    granted = _explicitly_granted(connection, cluster, period, seq)
    parts = divide(worth, paths, queries.shares_at(connection, instant(start_s), org_seq))
    return PeriodOpened(
        cluster=cluster,
        period=period,
        installed_gpu_ms=sum(h.gpus_milli * (h.end_s - h.start_s) for h in held),
        grants=[
            PeriodGrant(account=owner_of(leaf), gpu_ms=gpu_ms)
            for leaf, gpu_ms in parts.items()
            if owner_of(leaf) not in granted and gpu_ms > 0
        ],
        org_seq=(queries.sequences(connection) if vector is None else vector).get(ORG_BOOK, 0),
    )


def _journal(writer: Writer, fact: PeriodOpened, *, clock: Clock, calendar: Calendar) -> None:
    at_s, _ = calendar.period_bounds_s(fact.period)
    event, _ = make(id=f"period/{fact.cluster}/{fact.period}", source=SOURCE, at_s=at_s, data=fact)
    append(writer, fact.cluster, [event], clock=clock, calendar=calendar)


class PeriodStatus(NamedTuple):
    """Where a period of a cluster stands.

    Args:
        state: ``open``, ``closing`` or ``closed``; ``unopened`` while there are movements but no installed
            capacity to grant from.
        version: Closes that were begun.
        opened_seq: The row that opened it.
        opened_at: When that row was recorded.
        granted_gpu_ms: All grants to its leaves, in weighted units shown as gpu_ms.
    """

    cluster: str
    period: str
    state: str
    opened_seq: int | None
    opened_at: dt.datetime | None
    installed_gpu_ms: int | None
    granted_gpu_ms: int
    version: int

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            **self._asdict(),
            "opened_at": self.opened_at and iso(self.opened_at),
            "granted_gpu_hours": str(gpu_hours(self.granted_gpu_ms)),
        }


_NOW = """
    WITH moved AS (
        SELECT book, period, coalesce(sum(amount) FILTER (WHERE code = 'grant' AND pot = 'budget'), 0) AS granted
        FROM ledger.balances WHERE account <> %(issuer)s AND commodity = %(commodity)s GROUP BY book, period),
    stood AS (SELECT book, period, state, opened_seq, installed_gpu_ms, version FROM ledger.periods)
"""

_THEN = f"""
    WITH seen AS (SELECT * FROM unnest(%(books)s::text[], %(seqs)s::bigint[]) AS v (book, last_seq)),
    moved AS (
        SELECT book, period, coalesce(sum(amount) FILTER (WHERE code = 'grant' AND pot = 'budget'), 0) AS granted
        FROM ({LEGS}) AS legs JOIN seen USING (book)
        WHERE seq <= last_seq AND account <> %(issuer)s AND commodity = %(commodity)s GROUP BY book, period),
    told AS (
        SELECT book, seq, type, body->>'period' AS period, (body->>'installed_gpu_ms')::bigint AS installed_gpu_ms,
               (body->>'version')::bigint AS version
        FROM ledger.journal JOIN seen USING (book)
        WHERE seq <= last_seq AND workload IS NULL AND type IN (
            'period.opened', 'period.closing', 'period.closed', 'period.reopened')),
    stood AS (
        SELECT book, period, min(seq) FILTER (WHERE type = 'period.opened') AS opened_seq,
               coalesce((array_agg(CASE type WHEN 'period.reopened' THEN 'open' ELSE substr(type, 8) END
                   ORDER BY seq DESC) FILTER (WHERE type <> 'period.opened'))[1], 'open') AS state,
               (array_agg(installed_gpu_ms ORDER BY seq) FILTER (WHERE type = 'period.opened'))[1] AS installed_gpu_ms,
               (array_agg(version ORDER BY seq DESC) FILTER (WHERE type = 'period.closing'))[1] AS version
        FROM told GROUP BY book, period)
"""


def periods(reader: Reader, cluster: str | None, as_of: dt.datetime | None = None) -> list[PeriodStatus]:
    """Return every period that was opened or has movements, by cluster and period.

    Args:
        reader: A snapshot.
        cluster: One cluster, or all.
        as_of: Recorded time: what the books said then; now unless given.
    """
    vector = {} if as_of is None else queries.sequences(reader, as_of)
    rows = driver(reader).execute(
        f"""
        {_NOW if as_of is None else _THEN}
        SELECT book, period,
               CASE WHEN state <> 'open' THEN state WHEN opened_seq IS NULL THEN 'unopened' ELSE 'open' END, opened_seq,
               (SELECT recorded_at FROM ledger.journal AS j WHERE j.book = p.book AND j.seq = p.opened_seq),
               installed_gpu_ms, (coalesce(granted, 0) / %(one)s)::bigint, coalesce(version, 0)
        FROM moved FULL JOIN stood AS p USING (book, period)
        WHERE %(cluster)s::text IS NULL OR book = %(cluster)s
        ORDER BY book, period
        """,
        {
            "issuer": BOOK_POT_ACCOUNT, "commodity": WEIGHTED, "one": WEIGHT_ONE, "cluster": cluster,
            "books": list(vector), "seqs": list(vector.values()),
        },
    )  # fmt: skip
    return [PeriodStatus(*row) for row in rows]


def divide(total: int, paths: Sequence[str], shares: Mapping[str, int]) -> dict[str, int]:
    """Divide an amount down the tree by shares; the leaves' parts sum to the total exactly.

    Sibling sets whose shares are all 0 get nothing. Absent nodes and accounts without a share count 1.
    """
    nodes = sorted({node for path in paths for node in lineage(path)})
    children: dict[str | None, list[str]] = {}
    for node in nodes:
        children.setdefault(parent(node), []).append(node)
    parts: dict[str, int] = {}

    def descend(node: str | None, amount: int) -> None:
        below = children.get(node, [])
        if not below and node is not None:
            parts[node] = amount
        weights = [shares.get(child, share_unless_set(child)) for child in below]
        for child, part in zip(below, apportion(amount, weights), strict=True):
            descend(child, part)

    descend(None, total)
    return parts


class _Held(NamedTuple):
    """GPUs of one model that were installed over ``[start_s, end_s)``."""

    model: str
    gpus_milli: int
    start_s: int
    end_s: int


def installed_gpu_ms(connection: Reader | Writer, cluster: str, start_s: int, end_s: int) -> int:
    """Return installed capacity integrated over ``[start_s, end_s)``, physical."""
    held = _installed(connection, cluster, start_s, end_s)
    return sum(h.gpus_milli * (h.end_s - h.start_s) for h in held)


def _installed(
    connection: Reader | Writer, cluster: str, start_s: int, end_s: int, *, seq: int | None = None
) -> list[_Held]:
    rows = driver(connection).execute(
        f"SELECT gpu_model, gpus, from_at, to_at FROM ledger.hosts AS h WHERE book = %(book)s AND {said('h', seq)}"
        " AND from_at < %(end)s AND (to_at IS NULL OR to_at > %(start)s)",
        {"book": cluster, "end": instant(end_s), "start": instant(start_s), "seq": seq},
    )
    return [
        _Held(model, gpus * GPU_MILLI, max(seconds(from_at), start_s), _clip(to_at, end_s))
        for model, gpus, from_at, to_at in rows
    ]


def _clip(to_at: dt.datetime | None, end_s: int) -> int:
    return end_s if to_at is None else min(seconds(to_at), end_s)


def _unopened(writer: Writer, cluster: str) -> list[str]:
    rows = driver(writer).execute(
        "SELECT DISTINCT period FROM ledger.balances WHERE book = %s AND account <> %s"
        " AND period NOT IN (SELECT period FROM ledger.periods WHERE book = %s"
        " AND (opened_seq IS NOT NULL OR state <> 'open')) ORDER BY period",
        (cluster, BOOK_POT_ACCOUNT, cluster),
    )
    return [period for (period,) in rows]


def _explicitly_granted(connection: Reader | Writer, cluster: str, period: str, seq: int | None) -> set[str]:
    """Return who was granted something by order; what a rollover's minimum adds is a grant that nobody ordered."""
    rows = driver(connection).execute(
        "SELECT DISTINCT body->>'account' FROM ledger.journal WHERE book = %s AND workload IS NULL"
        " AND type IN ('budget.granted', 'adjustment.posted') AND coalesce(body->>'code', 'grant') = 'grant'"
        " AND body->>'period' = %s AND (body->>'gpu_ms')::bigint <> 0"
        " AND NOT coalesce((body->>'limit')::boolean, false) AND seq <= coalesce(%s, seq)",
        (cluster, period, seq),
    )
    return {owner_of(account) for (account,) in rows}
