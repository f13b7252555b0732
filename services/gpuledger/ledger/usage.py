"""GPU-time used, by whatever people ask: account, month, day, user, class, cluster, host, model, a label.

Physical, both classes. Closed segments count within the window; the open remainder of runs that go on
counts up to the report's end, and as *provisional* only. ``used`` is the part that the gpu_util rung saw
working; ``coverage`` the part of the assigned time, open runs included, that was sampled at all (law 10:
missing is unknown, never zero).
"""

import datetime as dt
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar, assert_never

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import SEPARATOR, own_path, owner_of
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries, spells
from gpuledger.ledger.copying import driver

_T = TypeVar("_T")

RUNG = "gpu_util"
"""The rung of the utilisation ladder that ``used`` stands for: liveness."""

UNKNOWN = "unknown"
"""The visible key of time of which nobody said the host, the model or the label."""

LABEL = "label:"
"""Before the name of a label, where rows are keyed by its values."""


class By(StrEnum):
    """What rows are keyed by."""

    ACCOUNT = "account"
    MONTH = "month"
    DAY = "day"
    USER = "user"
    CLASS = "class"
    CLUSTER = "cluster"
    HOST = "host"
    MODEL = "model"


class ByLabel(NamedTuple):
    """Rows are keyed by the values of a label, as submissions and updates give them."""

    name: str


Key = By | ByLabel
KEYS = (*By, f"{LABEL}NAME")
"""What rows are keyed by, as people write it."""


def key_of(text: str) -> Key:
    """Return what somebody wants rows keyed by.

    Raises:
        Refused: No such key; a label without a name is none.
    """
    if text.startswith(LABEL) and text != LABEL:
        return ByLabel(text.removeprefix(LABEL))
    if text not in set(By):
        raise Refused(f"--by: {text!r} is not a key", hint=f"one of {', '.join(KEYS)}")
    return By(text)


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """What is asked.

    Args:
        by: The key of the rows.
        cluster: One cluster, or all.
        account: An account and all below it, or all; of its ``~own``, what the account owns itself.
        from_s: Start of the window, seconds since the epoch; the beginning unless given.
        to_s: End of the window (exclusive); now unless given.
        as_of: Recorded time: what the book said then; now unless given.
    """

    by: Key
    cluster: str | None = None
    account: str | None = None
    from_s: int | None = None
    to_s: int | None = None
    as_of: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One key's GPU-time; that of open runs is in ``provisional_gpu_ms`` alone."""

    key: str
    gpu_ms: int
    provisional_gpu_ms: int
    used_gpu_ms: int | None
    coverage: Decimal | None


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The rows and what stands beside them."""

    rows: tuple[UsageRow, ...]
    total_gpu_ms: int
    provisional_gpu_ms: int
    estimated_gpu_ms: int
    as_of: dt.datetime

    def as_json(self) -> dict[str, Any]:
        """Return the report under the published keys."""
        return {
            "rows": [
                {
                    "key": row.key,
                    "gpu_ms": row.gpu_ms,
                    "gpu_hours": str(gpu_hours(row.gpu_ms)),
                    "provisional_gpu_ms": row.provisional_gpu_ms,
                    "used_gpu_ms": row.used_gpu_ms,
                    "coverage": None if row.coverage is None else str(row.coverage),
                }
                for row in self.rows
            ],
            "total_gpu_ms": self.total_gpu_ms,
            "total_gpu_hours": str(gpu_hours(self.total_gpu_ms)),
            "provisional_gpu_ms": self.provisional_gpu_ms,
            "estimated_gpu_ms": self.estimated_gpu_ms,
            "as_of": iso(self.as_of),
        }


def usage(
    reader: Reader, query: UsageQuery, now_s: int, default_calendar: Calendar | None = None
) -> UsageReport:
    """Return GPU-time used, keyed as asked, largest key order being the key's own.

    Args:
        reader: A snapshot.
        query: What is asked.
        now_s: The present, seconds since the epoch; open runs count up to here at most.
        default_calendar: Cuts months and days before the organisation has set its zone.
    """
    as_of = query.as_of or instant(now_s)
    end_s = min(query.to_s if query.to_s is not None else now_s, now_s, seconds(as_of))
    calendar = queries.calendar(reader, default_calendar or Calendar(), query.as_of)
    said = _said(reader, query, end_s)
    pieces = _pieces(reader, query, end_s, calendar, said)
    used = _used(reader, query, end_s, calendar, said)
    if query.by is By.ACCOUNT:
        org_seq = None if query.as_of is None else queries.sequences(reader, as_of).get(ORG_BOOK)
        inner = queries.inner_accounts(reader, org_seq)
        pieces, used = _with_own(pieces, inner), _with_own(used, inner)
    rows = []
    for key in sorted(pieces):
        gpu_ms, provisional, _ = pieces[key]
        sampled, upms = used.get(key, (0, 0))
        # gpu_ms x parts per million, to the nearest gpu_ms, half to even.
        amount = int((Decimal(upms) / 1_000_000).to_integral_value()) if sampled else None
        rows.append(UsageRow(key, gpu_ms, provisional, amount, _coverage(sampled, gpu_ms + provisional)))
    return UsageReport(
        rows=tuple(rows),
        total_gpu_ms=sum(p[0] for p in pieces.values()),
        provisional_gpu_ms=sum(p[1] for p in pieces.values()),
        estimated_gpu_ms=sum(p[2] for p in pieces.values()),
        as_of=as_of,
    )


def _with_own(found: dict[str, _T], inner: Container[str]) -> dict[str, _T]:
    """Return accounts as leaves: what an inner one owns itself is its child ``~own``."""
    return {own_path(account) if account in inner else account: value for account, value in found.items()}


def _coverage(sampled: int, assigned: int) -> Decimal | None:
    if not sampled or not assigned:
        return None
    return (Decimal(sampled) / assigned).quantize(Decimal("0.0001"))


_KEYS: dict[Key, str] = {
    By.ACCOUNT: "s.account",
    By.USER: "s.user_token",
    By.CLASS: "s.class",
    By.CLUSTER: "s.book",
    By.MODEL: f"coalesce(s.gpu_model, '{UNKNOWN}')",
    By.MONTH: "c.key",
    By.DAY: "c.key",
}
_BY_LABEL = f"coalesce(said.said, '{UNKNOWN}')"


_WITHIN = "(%(account)s::text IS NULL OR s.account = %(account)s OR starts_with(s.account, %(below)s))"
"""The condition on a segment that its account is the one asked for, or lies below it."""


def _within(query: UsageQuery) -> dict[str, str | None]:
    """Return the values of ``_WITHIN``. What an inner account owns itself stands under its own name."""
    if query.account is None or owner_of(query.account) != query.account:
        return {"account": query.account and owner_of(query.account), "below": None}
    return {"account": query.account, "below": query.account + SEPARATOR}


def _cuts(query: UsageQuery, span: tuple[int, int], calendar: Calendar) -> list[tuple[str, int, int]]:
    """Return (key, start, end) of the months or days that the span touches; the organisation's zone."""
    start_s, end_s = span
    match query.by:
        case By.MONTH:
            return [
                (period, *calendar.period_bounds_s(period))
                for period in calendar.periods_between(start_s, end_s)
            ]
        case By.DAY:
            first, last = calendar.day_of(start_s), calendar.day_of(max(start_s, end_s - 1))
            days = [first + dt.timedelta(days=n) for n in range((last - first).days + 1)]
            return [
                (day.isoformat(), calendar.day_start_s(day), calendar.day_start_s(day + dt.timedelta(days=1)))
                for day in days
            ]
        case By.ACCOUNT | By.USER | By.CLASS | By.CLUSTER | By.MODEL | By.HOST | ByLabel():
            return [("", start_s, end_s)]
        case _ as never:
            assert_never(never)


def _span(reader: Reader, query: UsageQuery, end_s: int) -> tuple[int, int]:
    row = (
        driver(reader)
        .execute(
            "SELECT floor(extract(epoch FROM min(from_at)))::bigint, floor(extract(epoch FROM max(to_at)))::bigint,"
            " bool_or(to_at IS NULL) FROM ledger.segments WHERE (%s::text IS NULL OR book = %s)",
            (query.cluster, query.cluster),
        )
        .fetchone()
    )
    first, last, is_open = row or (None, None, None)
    start_s = max(first if first is not None else 0, query.from_s if query.from_s is not None else -(2**40))
    return start_s, end_s if is_open or last is None else min(end_s, last)


def _pieces(
    reader: Reader, query: UsageQuery, end_s: int, calendar: Calendar, said: spells.Table
) -> dict[str, tuple[int, int, int]]:
    """Return key -> (gpu_ms of closed segments, provisional gpu_ms, estimated part of the first)."""
    span = _span(reader, query, end_s)
    if span[1] <= span[0]:
        return {}
    cuts = [c for c in _cuts(query, span, calendar) if c[2] > c[1]]
    start_s, stop_s = max(cuts[0][1], query.from_s if query.from_s is not None else cuts[0][1]), end_s
    keys, starts, ends = (list(column) for column in zip(*cuts, strict=True))
    starts[0] = max(starts[0], start_s)
    ends[-1] = min(ends[-1], stop_s)
    as_of_sql, as_of_values = queries.in_force(reader, query.as_of)
    # A run that goes on counts up to its declared limit at most.
    amount = (
        "s.gpus_milli * (least(s.until_s, c.end_s, said.to_s) - greatest(s.from_s, c.start_s, said.from_s))"
    )
    sql = f"""
        WITH c AS (SELECT * FROM unnest(%(keys)s::text[], %(starts)s::bigint[], %(ends)s::bigint[])
                        WITH ORDINALITY AS c (key, start_s, end_s, n)),
             s AS (SELECT *, extract(epoch FROM from_at)::bigint AS from_s, extract(epoch FROM to_at)::bigint AS to_s,
                          extract(epoch FROM coalesce(to_at, capped_at))::bigint AS until_s
                   FROM ledger.segments AS s
                   WHERE (%(cluster)s::text IS NULL OR s.book = %(cluster)s) AND {_WITHIN} AND {as_of_sql}),
             {said.sql}
        SELECT {_key(query.by)} AS key,
               coalesce(sum({amount}) FILTER (WHERE s.to_s IS NOT NULL), 0)::bigint,
               coalesce(sum({amount}) FILTER (WHERE s.to_s IS NULL), 0)::bigint,
               coalesce(sum({amount}) FILTER (WHERE s.to_s IS NOT NULL AND s.estimated), 0)::bigint
        FROM s
        -- The cuts that a segment touches are looked up; to try every day of decades takes minutes.
        CROSS JOIN LATERAL generate_series(
            greatest(1, width_bucket(s.from_s, %(starts)s::bigint[])),
            width_bucket(least(s.until_s, %(stop)s) - 1, %(starts)s::bigint[])) AS touched (n)
        JOIN c ON c.n = touched.n AND s.from_s < c.end_s AND (s.until_s IS NULL OR s.until_s > c.start_s)
        LEFT JOIN said ON said.book = s.book AND said.workload = s.workload AND (said.run IS NULL OR said.run = s.run)
            AND said.from_s < least(s.until_s, c.end_s) AND said.to_s > greatest(s.from_s, c.start_s)
        GROUP BY 1
    """
    values = {
        "keys": keys,
        "starts": starts,
        "ends": ends,
        "stop": ends[-1],
        "cluster": query.cluster,
        **_within(query),
        **as_of_values,
        **said.values,
    }
    rows = driver(reader).execute(sql, values).fetchall()
    return _by_host(rows) if query.by is By.HOST else {key: (a, b, c) for key, a, b, c in rows}


def _key(by: Key) -> str:
    """Return the expression of the key that amounts are summed by; of hosts, all of a run and what was told of them."""
    if by is By.HOST:
        return "jsonb_build_array(s.hosts, said.said)"
    return _BY_LABEL if isinstance(by, ByLabel) else _KEYS[by]


_SAID_OF_BUCKETS = """LEFT JOIN said ON said.book = b.book AND said.workload = b.workload
            AND extract(epoch FROM b.bucket_at) + 300 > said.from_s
            AND extract(epoch FROM b.bucket_at) + 300 <= said.to_s"""
"""The join of a bucket with what was told last before its end, as with its segment."""


def _said(reader: Reader, query: UsageQuery, end_s: int) -> spells.Table:
    """Return what was told besides segments that the key needs; nothing for keys that segments hold."""
    asked = spells.Asked(query.cluster, query.from_s, end_s, query.as_of)
    if isinstance(query.by, ByLabel):
        return spells.table(spells.label_spells(reader, asked, query.by.name))
    return spells.table(spells.host_spells(reader, asked) if query.by is By.HOST else ())


def _by_host(rows: Iterable[tuple[list[Any], int, int, int]]) -> dict[str, tuple[int, int, int]]:
    """Divide runs' GPU-time among their hosts, to the unit; runs without hosts are ``unknown``.

    Each host gets what was told that it gives, which is exact; where nobody told, all give as much.
    """
    found: dict[str, list[int]] = {}
    for (hosts, said), *amounts in rows:
        names = sorted(hosts) or [UNKNOWN]
        weights: Sequence[int] = [1] * len(names)
        if said is not None:
            told = spells.milli_by_host(said)
            names, weights = list(told), list(told.values())
        for column, amount in enumerate(amounts):
            for name, part in zip(names, apportion(amount, weights), strict=True):
                found.setdefault(name, [0, 0, 0])[column] += part
    return {name: (a, b, c) for name, (a, b, c) in found.items()}


def _used(
    reader: Reader, query: UsageQuery, end_s: int, calendar: Calendar, said: spells.Table
) -> dict[str, tuple[int, int]]:
    """Return key -> (sampled gpu_ms, used gpu_ms x 1e6); five-minute buckets that begin in the window."""
    start = query.from_s if query.from_s is not None else 0
    if query.by is By.HOST:
        key = "split_part(b.gpu, '/', 1)"
    elif query.by in (By.MONTH, By.DAY):
        form = "YYYY-MM" if query.by is By.MONTH else "YYYY-MM-DD"
        key = f"to_char(b.bucket_at AT TIME ZONE %(timezone)s, '{form}')"
    else:
        key = _key(query.by)
    as_of_sql, as_of_values = queries.in_force(reader, query.as_of)
    sql = f"""
        WITH {said.sql}
        SELECT {key} AS key, sum(b.sampled_gpu_ms)::bigint, sum(b.used_gpu_upms)::numeric
        FROM telemetry.run_buckets AS b
        JOIN LATERAL (SELECT s.* FROM ledger.segments AS s
                      WHERE s.book = b.book AND s.workload = b.workload AND s.run = b.run AND {as_of_sql}
                        AND s.from_at < b.bucket_at + interval '5 minutes'
                      ORDER BY s.from_at DESC LIMIT 1) AS s ON true
        {_SAID_OF_BUCKETS if isinstance(query.by, ByLabel) else ""}
        WHERE b.rung = %(rung)s AND (%(cluster)s::text IS NULL OR b.book = %(cluster)s) AND {_WITHIN}
          AND b.bucket_at >= to_timestamp(%(start)s) AND b.bucket_at < to_timestamp(%(end)s)
        GROUP BY 1
    """
    values = {
        "rung": RUNG, "cluster": query.cluster, "start": start, "end": end_s, "timezone": calendar.timezone,
        **_within(query), **as_of_values, **said.values,
    }  # fmt: skip
    rows = driver(reader).execute(sql, values).fetchall()
    return {key: (sampled, int(used)) for key, sampled, used in rows}
