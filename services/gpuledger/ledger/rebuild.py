"""Rebuild everything that is not the journal from the journal, or check that it would come out the same.

The *state digest* is an order-free hash of net amounts and runs: equal for any two ledgers that know
the same facts, whatever the order of arrival. User tokens are left out: they are random per ledger.
"""

import datetime as dt
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger import (
    adding_up,
    cycle_decisions,
    days,
    earlier,
    handles,
    histories,
    orders,
    overtaken,
    policy_status,
    projections,
    queries,
    replay,
    settlement,
    watermarks,
)
from gpuledger.ledger.batch import postings_of
from gpuledger.ledger.charges import GRANT, ROLLOVER, Booking, Posting, desired, difference
from gpuledger.ledger.copying import copy_rows, driver
from gpuledger.ledger.inventory import HostFact, intervals
from gpuledger.ledger.lines import line
from gpuledger.ledger.mapping import AS_GIVEN
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.ledger.segments import derive
from gpuledger.ledger.store import EFFECTIVE_PERIOD, LEGS

Net = tuple[str, ...]
"""book, commodity, pot, account, period, code, workload/run, day; the period is the day's, not that of the booking."""

PROJECTIONS = (
    "ledger.balances", "ledger.segments", "ledger.waits", "ledger.holds", "ledger.hosts", "ledger.accounts",
    "ledger.shares", "ledger.overdrafts", "ledger.organisation", "ledger.periods", "ledger.lots", "ledger.watermarks",
    "ledger.day_sums", "telemetry.handles",
)  # fmt: skip
"""What a rebuild drops and makes again; none of it is known from elsewhere than the journal."""

_PERIOD_COLUMNS = (
    "book",
    "period",
    "opened_seq",
    "installed_gpu_ms",
    "state",
    "version",
    "closing_seq",
    "closed_seq",
)

_STORED = {
    "balance": "SELECT book, commodity, pot, account, period, code, amount FROM ledger.balances",
    "run": f"SELECT book, {', '.join(projections.SEGMENT_COLUMNS)} FROM ledger.segments WHERE until_seq IS NULL",
    "wait": f"SELECT book, {', '.join(projections.WAIT_COLUMNS)} FROM ledger.waits WHERE until_seq IS NULL",
    "hold": f"SELECT book, {', '.join(projections.HOLD_COLUMNS)} FROM ledger.holds WHERE until_seq IS NULL",
    "host": f"SELECT book, {', '.join(projections.HOST_COLUMNS)} FROM ledger.hosts WHERE until_seq IS NULL",
    "account": "SELECT account, path, created_seq FROM ledger.accounts",
    "share": "SELECT account, from_at, share, set_seq FROM ledger.shares",
    "organisation": "SELECT set_seq, timezone, period FROM ledger.organisation",
    "overdraft": "SELECT account, from_at, overdraft, set_seq FROM ledger.overdrafts",
    "period": f"SELECT {', '.join(_PERIOD_COLUMNS)} FROM ledger.periods",
    "lot": f"SELECT {', '.join(orders.LOT_COLUMNS)} FROM ledger.lots",
    "handle": "SELECT book, handle, workload, run FROM telemetry.handles",
    "watermark": watermarks.STORED,
    "day": days.STORED,
    "tick": "SELECT book, ticked_at FROM ledger.books WHERE ticked_at IS NOT NULL",
}  # fmt: skip
"""What stands of each kind, in the columns that the journal says it in."""

_SHOWN = 20

SORT_MIB = 64
"""Memory in which PostgreSQL sorts the journal by workload before it uses files."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a check found: the digest of what stands, and where the journal says otherwise."""

    state_digest: str
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Tell whether the rebuilt state equals the stored one."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """Return the check under the published keys."""
        return {"ok": self.ok, "state_digest": self.state_digest, "differences": list(self.differences)}


def state_digest(reader: Reader | Writer) -> str:
    """Return the hex SHA-256 of every net amount and every run's segments, in a canonical order."""
    digest = hashlib.sha256()
    for text in sorted(_net_lines(_stored_net(reader))):
        digest.update(text.encode() + b"\n")
    rows = driver(reader).execute(
        "SELECT book, workload, run, floor(extract(epoch FROM from_at))::bigint,"
        " floor(extract(epoch FROM to_at))::bigint, account, class, gpus_milli"
        " FROM ledger.segments WHERE until_seq IS NULL"
    )
    for text in sorted(line(row) for row in rows.fetchall()):
        digest.update(text.encode() + b"\n")
    return digest.hexdigest()


def check(reader: Reader, default: Calendar) -> Rebuilt:
    """Derive every net amount, balance and projection anew from the journal and compare with what stands.

    A row that cannot be read is a difference like any other, and the last one: nothing follows from it.
    """
    try:
        found = _differences(reader, default)
    except Corrupt as error:
        found = [error.message]
    return Rebuilt(state_digest(reader), tuple(found))


def _differences(reader: Reader, default: Calendar) -> list[str]:
    calendar = queries.calendar(reader, default)
    booking = Booking(calendar)
    cards, mappings, ticks = queries.rate_cards(reader), queries.mappings(reader), replay.ticks(reader)
    net: dict[Net, int] = defaultdict(int)
    wanted: dict[str, list[str]] = {kind: [] for kind in _STORED}
    for some in histories.parts(reader):
        for book, workload, facts in some:
            history = derive([fact for _, fact in facts], mappings.get(book, AS_GIVEN))
            want = desired(history, calendar, cards.get(book, UNWEIGHTED), ticks.get(book))
            for posting in difference(want, {}, workload=workload, reason="", booking=booking):
                _fold(net, book, posting)
            wanted["run"] += [line((book, *projections.segment_row(s))) for s in history.segments]
            wanted["wait"] += [line((book, *projections.wait_row(w))) for w in history.waits]
            wanted["hold"] += [line((book, *projections.hold_row(h))) for h in history.holds]
            wanted["handle"] += map(
                line, set(handles.rows((book, known.source, known.data) for _, known in facts))
            )
    for book, _, host_facts in replay.iter_hosts(reader):
        wanted["host"] += [line(row) for row in _host_rows(book, [fact for _, fact in host_facts])]
    for book, commands in groupby(replay.commands(reader), key=lambda item: item[0]):
        _want_orders(net, wanted, book, [command for _, command in commands], booking)
    for book in queries.clusters(reader):
        wanted["lot"] += _want_settlement(net, reader, book, booking, ticks.get(book))
    wanted["tick"] = [line((book, instant(at_s))) for book, at_s in ticks.items()]
    wanted["watermark"] = [line(row) for row in driver(reader).execute(watermarks.IN_THE_JOURNAL)]
    wanted["day"] = [line(row) for row in days.rows(reader)]
    wanted["balance"] = list(_balance_lines(reader))
    found = list(_compare("net amount", _net_lines(net), _net_lines(_stored_net(reader))))
    for kind, query in _STORED.items():
        stored = [line(row) for row in driver(reader).execute(query).fetchall()]
        found += _compare(kind, wanted[kind], stored)
    found += [f"decisions not in the journal: {line(of)}" for of in cycle_decisions.forged(reader)]
    found += [f"newest cycle not in the journal: {line(of)}" for of in policy_status.forged(reader)]
    return found + _earlier_differences(reader)


def _earlier_differences(reader: Reader) -> list[str]:
    """Return what versions that are over say otherwise than the journal did: reads as of then rest on them."""
    starts, mappings = earlier.batch_starts(reader), histories.mappings_by_row(reader)
    found: dict[str, list[str]] = {kind: [] for kind in earlier.KINDS}
    for some in histories.parts(reader):
        for kind, told in earlier.of_workloads(reader, some, mappings, starts):
            found[kind].append(told)
    for kind, told in earlier.of_nothing(reader):
        found[kind].append(told)
    found["host"] = list(earlier.of_hosts(reader, replay.iter_hosts(reader), starts))
    return [told for of in found.values() for told in of[:_SHOWN]]


def _want_settlement(
    net: dict[Net, int], reader: Reader, book: str, booking: Booking, ticked_s: int | None
) -> list[str]:
    """Add what follows for accounts as a whole; return their carried lots."""
    want_of, carried = settlement.wanted(reader, book, booking.calendar, ticked_s)
    for want in want_of.values():
        for posting in difference(want, {}, workload=None, reason="", booking=booking):
            _fold(net, book, posting)
    for posting in overtaken.wanted(reader, book, booking):
        _fold(net, book, posting)
    return [line(row) for row in carried]


def _want_orders(
    net: dict[Net, int],
    wanted: dict[str, list[str]],
    book: str,
    commands: Sequence[projections.Journalled],
    booking: Booking,
) -> None:
    for command in commands:
        for posting in postings_of(command.fact, command.at_s, booking):
            _fold(net, book, posting)
    for kind, row in orders.rows(book, commands, booking.calendar):
        wanted[kind].append(line(row))


def rebuild(writer: Writer, default: Calendar) -> None:
    """Drop every projection and make it again from journal and postings, earlier versions included.

    Decisions that are kept of recent cycles stay where the journal's digest stands for them: the policy makes them
    again, by replay, and not the ledger.
    """
    connection = driver(writer)
    # Before anybody has to wait: to digest a day of decisions takes minutes, and what is kept of a cycle never changes.
    forged = cycle_decisions.forged(writer)
    connection.execute("LOCK TABLE ledger.books IN EXCLUSIVE MODE")
    connection.execute(f"SET LOCAL work_mem = '{SORT_MIB}MB'")
    for table in PROJECTIONS:
        connection.execute(f"DELETE FROM {table}")
    for book, seq in forged:
        cycle_decisions.drop(writer, book, seq)
    histories.rebuild(writer, meanwhile=adding_up.rebuild)
    _rebuild_hosts(writer)
    watermarks.rebuild(writer)
    told = replay.commands(writer)
    for item in told:  # the zone comes first: lots lapse at edges of its days
        if isinstance(item[1].fact, budget.PolicyChanged):
            orders.write_orders(writer, item[0], [item[1]], default)
    calendar, ticks = queries.calendar(writer, default), replay.ticks(writer)
    for book, commands in groupby(told, key=lambda item: item[0]):
        rest = [command for _, command in commands if not isinstance(command.fact, budget.PolicyChanged)]
        orders.write_orders(writer, book, rest, calendar)
        connection.execute(
            "UPDATE ledger.books SET ticked_at = to_timestamp(%s) WHERE book = %s", (ticks.get(book), book)
        )
        settlement.rebuild(writer, book, calendar, ticks.get(book))


def _rebuild_hosts(writer: Writer) -> None:
    rows = [
        (since, until, *row)
        for book, _, facts in replay.iter_hosts(writer)
        for row, since, until in replay.versions(facts, partial(_host_rows, book))
    ]
    copy_rows(writer, "ledger.hosts", ("since_seq", "until_seq", "book", *projections.HOST_COLUMNS), rows)


def _host_rows(book: str, facts: Iterable[HostFact]) -> list[tuple[object, ...]]:
    return [(book, *projections.host_row(i)) for i in intervals(list(facts))]


def _fold(net: dict[Net, int], book: str, p: Posting) -> None:
    run = f"{p.workload}/{p.run}" if p.run else ""
    for side, sign in ((p.debit, -1), (p.credit, 1)):
        period = _month(p.day) if p.code == GRANT else side.period  # a minimum is issued by the period before
        key = (book, p.commodity, side.pot, side.account, period, p.code, run, p.day.isoformat())
        net[key] += sign * p.amount


def _stored_net(connection: Reader | Writer) -> dict[Net, int]:
    rows = driver(connection).execute(
        f"SELECT book, commodity, pot, account, {EFFECTIVE_PERIOD}, code, coalesce(workload || '/' || run, ''),"
        f" effective_on::text, sum(amount)::bigint FROM ({LEGS}) AS legs GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"
    )
    net = {tuple(key): amount for *key, amount in rows}
    _take_as_grants(net, connection)
    return net


def _take_as_grants(net: dict[Net, int], connection: Reader | Writer) -> None:
    """Count what minima gave as the grants that they are now: old books have it as a rollover out of issue."""
    rows = driver(connection).execute(
        "SELECT book, commodity, pot, account, effective_on, sign * amount FROM ledger.postings CROSS JOIN LATERAL"
        " (VALUES (debit_pot, debit_account, -1), (credit_pot, credit_account, 1)) AS leg (pot, account, sign)"
        " WHERE code = 'rollover' AND 'issue' IN (debit_pot, credit_pot)"
    )
    for book, commodity, pot, account, day, amount in rows.fetchall():
        first_day = day + dt.timedelta(days=1)
        period = _month(first_day if pot == "budget" else day)
        for key, change in (
            ((book, commodity, pot, account, period, ROLLOVER, "", day.isoformat()), -amount),
            ((book, commodity, pot, account, _month(first_day), GRANT, "", first_day.isoformat()), amount),
        ):
            net[key] = net.get(key, 0) + change


def _month(day: dt.date) -> str:
    return f"{day:%Y-%m}"


def _net_lines(net: dict[Net, int]) -> Iterator[str]:
    return (line((*key, amount)) for key, amount in net.items() if amount)


def _balance_lines(reader: Reader) -> Iterator[str]:
    """Return the fold of every posting: what the balances must say (law 4)."""
    rows = driver(reader).execute(
        f"SELECT book, commodity, pot, account, period, code, sum(amount)::bigint FROM ({LEGS}) AS legs"
        " GROUP BY 1, 2, 3, 4, 5, 6"
    )
    return (line(row) for row in rows)


def _compare(what: str, wanted: Iterable[str], stored: Iterable[str]) -> Iterator[str]:
    """Compare as multisets: a row that stands twice counts twice in every report."""
    want, have = Counter(wanted), Counter(stored)
    for text in sorted((want - have).elements())[:_SHOWN]:
        yield f"{what} missing: {text}"
    for text in sorted((have - want).elements())[:_SHOWN]:
        yield f"{what} not in the journal: {text}"
