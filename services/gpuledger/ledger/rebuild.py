"""Rebuild everything that is not the journal from the journal, or check that it would come out the same.

The *state digest* is an order-free hash of net amounts and runs: equal for any two ledgers that know
the same facts, whatever the order of arrival. User tokens are left out: they are random per ledger.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.envelope import decode_data
from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import projections, queries
from gpuledger.ledger.append import postings_of
from gpuledger.ledger.charges import Posting, desired, difference
from gpuledger.ledger.copying import driver
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, Segment, derive

Net = tuple[str, ...]
"""book, commodity, pot, account, period, code, workload/run, day."""


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
    for line in sorted(_net_lines(_stored_net(reader))):
        digest.update(line.encode() + b"\n")
    for line in sorted(_stored_runs(reader)):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def check(reader: Reader, default: Calendar) -> Rebuilt:
    """Derive every net amount, run and balance anew from the journal and compare with what stands."""
    calendar = queries.calendar(reader, default)
    net: dict[Net, int] = defaultdict(int)
    runs: set[str] = set()
    for book, workload, history in _histories(reader):
        wanted = desired(history.segments, calendar)
        for posting in difference(wanted, {}, workload=workload, reason=""):
            _fold(net, book, posting)
        runs.update(_run_line(book, *_run_columns(s)) for s in history.segments)
    for book, posting in _commands(reader, calendar):
        _fold(net, book, posting)
    found = [
        *_compare("net amount", set(_net_lines(net)), set(_net_lines(_stored_net(reader)))),
        *_compare("run", runs, set(_stored_runs(reader))),
        *_compare("balance", set(_balance_lines(net)), set(_stored_balances(reader))),
    ]
    return Rebuilt(state_digest(reader), tuple(found))


def rebuild(writer: Writer) -> None:
    """Drop balances, segments and waits and make them again from journal and postings."""
    connection = driver(writer)
    connection.execute("LOCK TABLE ledger.books IN EXCLUSIVE MODE")
    for table in ("balances", "segments", "waits"):
        connection.execute(f"DELETE FROM ledger.{table}")
    connection.execute(
        """
        INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)
        SELECT book, commodity, account, period, pot, code, sum(amount)::bigint FROM (
            SELECT book, commodity, debit_account AS account, debit_period AS period, debit_pot AS pot, code,
                   -amount AS amount
            FROM ledger.postings
            UNION ALL
            SELECT book, commodity, credit_account, credit_period, credit_pot, code, amount
            FROM ledger.postings) AS legs
        GROUP BY book, commodity, account, period, pot, code
        """
    )
    by_book: dict[str, list[tuple[int, bool, str, History]]] = defaultdict(list)
    for book, workload, history in _histories(writer):
        by_book[book].append((0, False, workload, history))
    for book, histories in by_book.items():
        projections.write_histories(writer, book, histories)


def _histories(connection: Reader | Writer) -> Iterator[tuple[str, str, History]]:
    name: tuple[str, str] | None = None
    facts: list[Known] = []
    with driver(connection).cursor(name="rebuild_facts") as cursor:
        cursor.itersize = 5000
        cursor.execute(
            "SELECT book, workload, type, body::text, effective_at, source, digest FROM ledger.journal"
            " WHERE workload IS NOT NULL ORDER BY book, workload"
        )
        for book, workload, type_, body, effective_at, source, digest in cursor:
            if (book, workload) != name:
                if name is not None:
                    yield *name, derive(facts)
                name, facts = (book, workload), []
            data = decode_data(type_, body)
            assert isinstance(data, WorkloadFact)  # noqa: S101 - rows with a workload are such facts
            facts.append(Known(data, seconds(effective_at), source, bytes(digest)))
    if name is not None:
        yield *name, derive(facts)


def _commands(reader: Reader, calendar: Calendar) -> Iterator[tuple[str, Posting]]:
    rows = driver(reader).execute(
        "SELECT book, type, body::text FROM ledger.journal WHERE workload IS NULL AND book IS NOT NULL"
        " AND type IN ('budget.granted', 'period.opened')"
    )
    for book, type_, body in rows.fetchall():
        for posting in postings_of(decode_data(type_, body), calendar):
            yield book, posting


def _fold(net: dict[Net, int], book: str, p: Posting) -> None:
    for side, sign in ((p.debit, -1), (p.credit, 1)):
        key = (
            book,
            p.commodity,
            side.pot,
            side.account,
            side.period,
            p.code,
            f"{p.workload}/{p.run}" if p.run else "",
            p.day.isoformat(),
        )
        net[key] += sign * p.amount


def _stored_net(connection: Reader | Writer) -> dict[Net, int]:
    rows = driver(connection).execute(
        """
        SELECT book, commodity, pot, account, period, code, coalesce(workload || '/' || run, ''),
               effective_on::text, sum(amount)::bigint
        FROM (SELECT book, commodity, debit_pot AS pot, debit_account AS account, debit_period AS period, code,
                     workload, run, effective_on, -amount AS amount FROM ledger.postings
              UNION ALL
              SELECT book, commodity, credit_pot, credit_account, credit_period, code, workload, run, effective_on,
                     amount
              FROM ledger.postings) AS legs
        GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
        """
    )
    return {tuple(key): amount for *key, amount in rows}


def _net_lines(net: dict[Net, int]) -> Iterator[str]:
    return ("\t".join((*key, str(amount))) for key, amount in net.items() if amount)


def _balance_lines(net: dict[Net, int]) -> Iterator[str]:
    sums: dict[Net, int] = defaultdict(int)
    for key, amount in net.items():
        sums[key[:6]] += amount
    return _net_lines(sums)


def _stored_balances(reader: Reader) -> Iterator[str]:
    rows = driver(reader).execute(
        "SELECT book, commodity, pot, account, period, code, amount FROM ledger.balances WHERE amount <> 0"
    )
    return ("\t".join(map(str, row)) for row in rows.fetchall())


def _stored_runs(connection: Reader | Writer) -> Iterator[str]:
    rows = driver(connection).execute(
        "SELECT book, workload, run, from_at, to_at, account, class, gpus_milli FROM ledger.segments"
        " WHERE until_seq IS NULL"
    )
    for book, workload, run, from_at, to_at, *rest in rows.fetchall():
        yield _run_line(
            book, workload, run, seconds(from_at), None if to_at is None else seconds(to_at), *rest
        )


def _run_columns(s: Segment) -> tuple[object, ...]:
    return (s.workload, s.run, s.from_s, s.to_s, s.account, s.klass, s.gpus_milli)


def _run_line(book: str, *columns: object) -> str:
    return "\t".join(map(str, (book, *columns)))


def _compare(what: str, wanted: Iterable[str], stored: Iterable[str]) -> Iterator[str]:
    wanted, stored = set(wanted), set(stored)
    for line in sorted(wanted - stored)[:20]:
        yield f"{what} missing: {line}"
    for line in sorted(stored - wanted)[:20]:
        yield f"{what} not in the journal: {line}"
