"""What a settlement reads and writes: how far a book is settled, its lots, uses by day, and what is posted."""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.rollover import Rollover
from gpuledger.ledger import days
from gpuledger.ledger.charges import GRANT, MINIMUM, SETTLED, WEIGHTED, Key, Posted
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.lots import ROLLED, Lot
from gpuledger.ledger.orders import LOT_COLUMNS
from gpuledger.ledger.store import LEGS, SIGNED

DEBT = "debt"
"""The lot, below zero, of an overrun that is carried into the next period."""

_ONE_DAY = dt.timedelta(days=1)

Carried = dict[tuple[str, str], list[Lot]]
"""(account, period) -> the lots that go on into it; a debt is a lot below zero."""


class Touched(NamedTuple):
    """An account's budget and a period that something in a batch is effective in."""

    account: str
    period: str


class Settled(NamedTuple):
    """How far a book is settled.

    Args:
        closed: Its closed periods.
        today: The day on which the book's clock stands.
        lapses: Accounts and periods with lots that have lapsed before their period's close.
        last_lapse: Account -> the last of those periods.
        lapsed_since: Those of the lapses that are new since the clock stood where it did before.
        gone_on: Each of the lapses -> the day on which the last of its lots that have lapsed was gone.
        as_of_seq: The newest row that is known of; None for all. Of lots that were carried over nothing is known then:
            they follow from those that were given.
    """

    name: str
    closed: frozenset[str]
    today: dt.date
    calendar: Calendar
    lapses: frozenset[Touched] = frozenset()
    last_lapse: Mapping[str, str] = {}
    lapsed_since: frozenset[Touched] = frozenset()
    as_of_seq: int | None = None
    gone_on: Mapping[Touched, dt.date] = {}

    def through(self, account: str, start: str) -> list[str]:
        """Return the periods that an account's arithmetic reaches from one on: up to the last that anything settles.

        What a closed period leaves goes on into the one after it.
        """
        last = max((*self.closed, start, self.last_lapse.get(account, start)))
        found = [start]
        while found[-1] < last:
            found.append(self.calendar.following(found[-1]))
        if found[-1] in self.closed:
            found.append(self.calendar.following(found[-1]))
        return found


def read(
    connection: Reader | Writer,
    book: str,
    calendar: Calendar,
    ticked_s: int | None,
    *,
    before_s: int | None = None,
    accounts: Collection[str] | None = None,
    as_of_seq: int | None = None,
) -> Settled:
    """Return how far a book is settled.

    Args:
        connection: A transaction.
        book: The book.
        calendar: The organisation's days.
        ticked_s: Where its clock stands.
        before_s: Where it stood before; None for nowhere.
        accounts: Only lapses of these, and of accounts with a new one; all unless given.
        as_of_seq: As it was after this row; as it is unless given.
    """
    closed = _closed(connection, book, as_of_seq)
    before = dt.date.min if before_s is None else calendar.day_of(before_s)
    today = dt.date.min if ticked_s is None else calendar.day_of(ticked_s)
    rows = driver(connection).execute(
        """
        WITH lapsed AS (
            SELECT account, period, expires_on FROM ledger.lots
            WHERE book = %(book)s AND expires_on <= %(today)s AND (%(seq)s::bigint IS NULL
                  OR (created_seq <= %(seq)s AND NOT starts_with(name, %(rolled)s))))
        SELECT account, period, max(expires_on) FROM lapsed
        WHERE %(accounts)s::text[] IS NULL OR account = ANY(%(accounts)s)
              OR account IN (SELECT account FROM lapsed WHERE expires_on > %(before)s)
        GROUP BY account, period ORDER BY period
        """,
        {
            "book": book,
            "before": before,
            "today": today,
            "accounts": None if accounts is None else sorted(accounts),
            "seq": as_of_seq,
            "rolled": ROLLED,
        },
    )
    lapses = {Touched(account, period): gone_on for account, period, gone_on in rows}
    new = frozenset(lapse for lapse, gone_on in lapses.items() if gone_on > before)
    last = dict(lapses.keys())  # in the order of periods, so that the last one stays
    return Settled(book, closed, today, calendar, frozenset(lapses), last, new, as_of_seq, lapses)


def _closed(connection: Reader | Writer, book: str, as_of_seq: int | None) -> frozenset[str]:
    if as_of_seq is None:
        rows = driver(connection).execute(
            "SELECT period FROM ledger.periods WHERE book = %s AND state = 'closed'", (book,)
        )
    else:
        rows = driver(connection).execute(
            "SELECT period FROM (SELECT DISTINCT ON (body->>'period') body->>'period' AS period, type"
            " FROM ledger.journal WHERE book = %s AND seq <= %s AND workload IS NULL"
            " AND type IN ('period.closed', 'period.reopened') ORDER BY body->>'period', seq DESC) AS newest"
            " WHERE type = 'period.closed'",
            (book, as_of_seq),
        )
    return frozenset(period for (period,) in rows)


def reach(
    connection: Reader | Writer, book: str, account: str, as_of_seq: int | None = None
) -> tuple[str | None, str | None]:
    """Return the first period of an account's budget that is not closed, and the last of all; None for none.

    As of a row the first of all: what was carried into a later one by then follows from there.
    """
    if as_of_seq is not None:
        row = driver(connection).execute(
            f"SELECT min(period), max(period) FROM ({LEGS}) AS legs"
            " WHERE book = %s AND account = %s AND commodity = %s AND pot = 'budget' AND seq <= %s",
            (book, account, WEIGHTED, as_of_seq),
        ).fetchone()  # fmt: skip
        return (None, None) if row is None else (row[0], row[1])
    row = driver(connection).execute(
        """
        SELECT min(b.period) FILTER (WHERE p.state IS DISTINCT FROM 'closed'), max(b.period)
        FROM ledger.balances AS b LEFT JOIN ledger.periods AS p ON p.book = b.book AND p.period = b.period
        WHERE b.book = %s AND b.account = %s AND b.commodity = %s AND b.pot = 'budget'
        """,
        (book, account, WEIGHTED),
    ).fetchone()  # fmt: skip
    return (None, None) if row is None else (row[0], row[1])


def accounts_in(connection: Reader | Writer, book: Settled, periods: Iterable[str]) -> set[Touched]:
    """Return the accounts with lots in the periods, or with movements that belong there, whenever they were booked."""
    asked = list(periods)
    if not asked:
        return set()
    rows = driver(connection).execute(
        """
        SELECT account, period FROM ledger.lots WHERE book = %(book)s AND period = ANY(%(periods)s)
        UNION
        SELECT leg.account, moved.period
        FROM unnest(%(periods)s::text[], %(firsts)s::date[], %(lasts)s::date[]) AS moved (period, first_on, last_on)
        JOIN ledger.postings AS p ON p.effective_on BETWEEN moved.first_on AND moved.last_on
        CROSS JOIN LATERAL (VALUES (p.debit_pot, p.debit_account), (p.credit_pot, p.credit_account))
            AS leg (pot, account)
        WHERE p.book = %(book)s AND p.commodity = %(commodity)s AND leg.pot = 'budget'
        """,
        {
            "book": book.name,
            "periods": asked,
            "firsts": [book.calendar.days_of(period)[0] for period in asked],
            "lasts": [book.calendar.days_of(period)[1] for period in asked],
            "commodity": WEIGHTED,
        },
    )
    return {Touched(*row) for row in rows}


def lots(
    connection: Reader | Writer,
    book: Settled,
    starts: Mapping[str, str] | None,
    upto_seq: int | None,
    *,
    from_scratch: bool,
) -> dict[tuple[str, str], list[Lot]]:
    """Return (account, period) -> its lots from the earliest start on; every account's without starts."""
    accounts, first = (None, "") if starts is None else (list(starts), min(starts.values()))
    rows = driver(connection).execute(
        "SELECT account, period, name, priority, expires_on, created_seq, amount, rollover FROM ledger.lots"
        " WHERE book = %s AND (%s::text[] IS NULL OR account = ANY(%s)) AND period >= %s"
        " AND (%s::bigint IS NULL OR created_seq <= %s)",
        (book.name, accounts, accounts, first, upto_seq, upto_seq),
    )
    found: dict[tuple[str, str], list[Lot]] = {}
    for account, period, name, priority, expires_on, created, amount, rollover in rows:
        lot = Lot(name, priority, expires_on, created, amount, _rule(rollover))
        if not (from_scratch and is_carried(lot)):
            found.setdefault((account, period), []).append(lot)
    return found


def _rule(text: str | None) -> Rollover | None:
    try:
        return Rollover.parse(text)
    except Refused:  # no version understood it: nothing goes on
        return None


def uses(
    connection: Reader | Writer,
    book: Settled,
    starts: Mapping[str, str],
    booked_in: str | None,
    *,
    from_day: dt.date | None = None,
) -> dict[tuple[str, str], dict[dt.date, int]]:
    """Return (account, period) -> day -> what left the budget, other than by expiry and rollover, less what came back.

    Lots are what came in: grants and transfers received are none of it. From the first start on, or a day.
    """
    first_day = from_day or book.calendar.days_of(min(starts.values()))[0]
    if booked_in is None and book.as_of_seq is None:
        by_day = days.read(connection, book.name, starts, first_day)
    else:
        by_day = days.read_anew(
            connection, book.name, starts, first_day, as_of_seq=book.as_of_seq, booked_in=booked_in
        )
    found: dict[tuple[str, str], dict[dt.date, int]] = {}
    for (account, day), sums in by_day.items():
        found.setdefault((account, book.calendar.period_of(day)), {})[day] = sums.used
    return found


def posted(
    connection: Reader | Writer, book: Settled, starts: Mapping[str, str], booked_in: str | None = None
) -> dict[str, dict[Key, Posted]]:
    """Return account -> the expiry and rollover that stand, from its start on.

    What a minimum granted counts as a movement of its own, of the period whose close granted it. Books that were
    written before it was a grant have it as a rollover out of ``issue``, on the last day of that period.
    """
    first_day, _ = book.calendar.days_of(min(starts.values()))
    found: dict[str, dict[Key, Posted]] = {}
    for account, code, pot, day, amount, seq in _settled_rows(connection, book, starts, booked_in, first_day):
        of_day = day - _ONE_DAY if code == GRANT else day
        if book.calendar.period_of(of_day) < starts[account]:
            continue
        key = Key(code, WEIGHTED, account, pot, "", day)
        if pot == "issue":
            key = key._replace(code=MINIMUM, day=of_day + _ONE_DAY)
        own = found.setdefault(account, {})
        before = own.get(key, Posted(0, 0))
        own[key] = Posted(before.amount + amount, max(before.seq, seq))
    return found


def _settled_rows(
    connection: Reader | Writer,
    book: Settled,
    starts: Mapping[str, str],
    booked_in: str | None,
    first_day: dt.date,
) -> Iterable[tuple[str, str, str, dt.date, int, int]]:
    """Return (account, code, debit pot, day, net amount, newest row); grants only where some lot has a minimum."""
    codes = ["code IN ('expiry', 'rollover')"]
    if _have_minima(connection, book, starts):
        codes.append("code = 'grant' AND reason = %(settled)s")
    signed = " UNION ALL ".join(
        f"SELECT account, code, from_pot, effective_on, signed, seq FROM ({SIGNED}"
        f" WHERE book = %(book)s AND {of} AND effective_on >= %(first)s"
        # What rolls over is booked in two periods, from the first into the second.
        " AND (%(booked_in)s::text IS NULL OR least(debit_period, credit_period) = %(booked_in)s)"
        " AND (%(seq)s::bigint IS NULL OR seq <= %(seq)s)) AS own"
        for of in codes
    )
    return driver(connection).execute(
        f"SELECT account, code, from_pot, effective_on, sum(signed)::bigint, max(seq) FROM ({signed}) AS own"
        " WHERE account = ANY(%(accounts)s) GROUP BY account, code, from_pot, effective_on",
        {
            "book": book.name,
            "first": first_day,
            "booked_in": booked_in,
            "seq": book.as_of_seq,
            "accounts": list(starts),
            "settled": SETTLED,
        },
    )


def _have_minima(connection: Reader | Writer, book: Settled, accounts: Iterable[str]) -> bool:
    row = driver(connection).execute(
        "SELECT EXISTS (SELECT FROM ledger.lots"
        " WHERE book = %s AND account = ANY(%s) AND starts_with(rollover, 'min'))",
        (book.name, list(accounts)),
    ).fetchone()  # fmt: skip
    return bool(row and row[0])


def write_carried(writer: Writer, book: Settled, starts: Mapping[str, str], carried: Carried) -> None:
    """Write the lots that go on into later periods in place of those that did."""
    if not starts:
        return
    driver(writer).execute(
        "DELETE FROM ledger.lots AS l USING unnest(%s::text[], %s::text[]) AS s (account, period)"
        " WHERE l.book = %s AND l.account = s.account AND l.period > s.period AND (name = %s OR starts_with(name, %s))",
        (list(starts), list(starts.values()), book.name, DEBT, ROLLED),
    )
    rows = carried_rows(book.name, carried)
    if rows:
        copy_rows(writer, "ledger.lots", LOT_COLUMNS, rows)


def carried_rows(book: str, carried: Carried) -> list[tuple[object, ...]]:
    """Return carried lots as the columns of their table."""
    return [
        (
            book, account, period, lot.name, lot.priority, lot.expires_on, lot.created, lot.amount,
            lot.rollover.text if lot.rollover else None,
        )
        for (account, period), lots in sorted(carried.items())
        for lot in lots
    ]  # fmt: skip


def is_carried(lot: Lot) -> bool:
    """Tell whether a lot was carried over from the period before."""
    return lot.name == DEBT or lot.name.startswith(ROLLED)
