"""A ledger under test: what happened is told in one line, what the database holds is one query away."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import budget, host, workload
from gpuledger.events.envelope import Event, book_of, decode, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.ledger.append import Appended, append
from gpuledger.ledger.balances import Balance, BalanceQuery, balance
from gpuledger.ledger.rebuild import state_digest
from gpuledger.ledger.usage import UsageQuery, UsageReport, key_of, usage

CLUSTER = "alpha"
SOURCE = "test/stream"
NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
"""What the clock of a test's ledger says at first."""

HOUR = 3600
GPU_HOUR = 3_600_000


def at(text: str) -> int:
    """Return an instant such as ``2017-10-31T22:30:00Z`` as seconds."""
    return int(dt.datetime.fromisoformat(text).timestamp())


def told(at_s: int, fact: Fact, *, source: str = SOURCE, id: str | None = None, **extra: Any) -> Event:  # noqa: A002, ANN401
    """Return an event; its id is its content unless given, extra keys go into its data."""
    body = msgspec.json.encode(fact)
    event, value = make(id=id or f"{at_s}/{body.decode()}", source=source, at_s=at_s, data=fact)
    if not extra:
        return event
    wire = msgspec.json.decode(value)
    wire["data"] |= extra
    return decode(msgspec.json.encode(wire))


def submitted(name: str = "w1", **keys: Any) -> workload.Submitted:  # noqa: ANN401
    """Somebody asked for 8 GPUs, unless told otherwise."""
    asked = {"cluster": CLUSTER, "account": "org/vision", "user": "ada", "gpus_milli": 8000, **keys}
    return workload.Submitted(workload=name, **asked)


def started(name: str = "w1", run: str = "r1", **keys: Any) -> workload.Started:  # noqa: ANN401
    """A run got 8 GPUs on host h1, unless told otherwise."""
    given = {"cluster": CLUSTER, "attempt": 1, "gpus_milli": 8000, "hosts": ["h1"], **keys}
    return workload.Started(workload=name, run=run, **given)


def ended(name: str = "w1", run: str | None = "r1", **keys: Any) -> workload.Ended:  # noqa: ANN401
    """The run (or the workload) ended."""
    return workload.Ended(**{"cluster": CLUSTER, "workload": name, "run": run, "reason": "completed", **keys})


def run_of(
    start_s: int,
    end_s: int,
    name: str = "w1",
    *,
    account: str = "org/vision",
    cluster: str = CLUSTER,
    **keys: Any,  # noqa: ANN401
) -> list[Event]:
    """A workload that was submitted, started at once, and ended."""
    return [
        told(start_s, submitted(name, account=account, cluster=cluster)),
        told(start_s, started(name, cluster=cluster, **keys)),
        told(end_s, ended(name, cluster=cluster)),
    ]


def registered(name: str, gpus: int, **keys: Any) -> host.Registered:  # noqa: ANN401
    """A host stands in the inventory."""
    return host.Registered(**{"cluster": CLUSTER, "host": name, "gpus": gpus, "gpu_model": "H100", **keys})


def granted(account: str, period: str, gpu_ms: int) -> budget.Granted:
    """Somebody granted GPU-time."""
    return budget.Granted(
        account=account, cluster=CLUSTER, period=period, gpu_ms=gpu_ms, reason="test", by="test"
    )


@dataclass
class Ledger:
    """One migrated database and the clock that its writers read."""

    url: str
    calendar: Calendar = field(default_factory=Calendar)
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOON))

    def __post_init__(self) -> None:
        self.engine = make_engine(self.url)

    def append(self, *events: Event) -> Appended:
        """Append events of one book in one transaction."""
        (book,) = {book_of(event.data) for event in events}
        with writing(self.engine) as writer:
            return append(writer, book, events, clock=self.clock, calendar=self.calendar)

    def rows(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        """Return what a query finds."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(sql), values)]

    def value(self, sql: str, **values: object) -> Any:  # noqa: ANN401
        """Return the one value a query finds."""
        ((value,),) = self.rows(sql, **values)
        return value

    def change(self, *statements: str) -> None:
        """Do what the owner of the database may do, in one transaction."""
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    @contextmanager
    def trial(self, *statements: str) -> Iterator[sa.Connection]:
        """Do what the owner may do, look at what comes of it in the same transaction, and take it all back."""
        with self.engine.connect() as connection, connection.begin() as transaction:
            for statement in statements:
                connection.exec_driver_sql(statement)
            yield connection
            transaction.rollback()

    def net(self, commodity: str = "gpu_ms") -> dict[tuple[str, str, str, str], int]:
        """Return (code, account, workload/run, day) -> net amount charged or used."""
        rows = self.rows(
            "SELECT code, CASE WHEN credit_pot IN ('spent', 'unallocated') THEN credit_account ELSE debit_account END,"
            " workload || '/' || run, effective_on::text,"
            " sum(CASE WHEN credit_pot IN ('spent', 'unallocated') THEN amount ELSE -amount END)::bigint"
            " FROM ledger.postings WHERE commodity = :commodity AND code <> 'grant' GROUP BY 1, 2, 3, 4",
            commodity=commodity,
        )
        return {(code, account, run, day): amount for code, account, run, day, amount in rows if amount}

    def total(self) -> int:
        """Return the physical GPU-time that is booked, whoever pays."""
        return sum(self.net().values())

    def usage(self, by: str = "account", now: str = "2026-12-01T12:00:00Z", **query: Any) -> UsageReport:  # noqa: ANN401
        """Report use."""
        with reading(self.engine) as reader:
            return usage(reader, UsageQuery(by=key_of(by), **query), at(now), self.calendar)

    def used(self, by: str = "account", now: str = "2026-12-01T12:00:00Z", **query: Any) -> dict[str, int]:  # noqa: ANN401
        """Report use as key -> gpu_ms."""
        return {row.key: row.gpu_ms for row in self.usage(by, now, **query).rows}

    def balance(self, account: str, period: str | None = None, now: str = "2026-12-01T12:00:00Z") -> Balance:
        """Return an account's balance."""
        with reading(self.engine) as reader:
            return balance(reader, account, BalanceQuery(CLUSTER, period), at(now), self.calendar)

    def digest(self) -> str:
        """Return the state digest."""
        with reading(self.engine) as reader:
            return state_digest(reader)


def tampering(table: str, *statements: str) -> tuple[str, ...]:
    """Return the statements of a superuser who switches the guards off, changes history, and on again."""
    return (
        f"ALTER TABLE ledger.{table} DISABLE TRIGGER ALL",
        *statements,
        f"ALTER TABLE ledger.{table} ENABLE ALWAYS TRIGGER append_only_rows",
        f"ALTER TABLE ledger.{table} ENABLE ALWAYS TRIGGER append_only_table",
    )


def empty(ledger: Ledger) -> None:
    """Take everything out of a ledger, its history too."""
    tables = ledger.rows(
        "SELECT schemaname || '.' || tablename FROM pg_tables"
        " WHERE schemaname IN ('ledger', 'side', 'telemetry', 'warehouse')"
        " AND tablename !~ '^(journal|postings|identities)'"
        " ORDER BY 1"
    )
    ledger.change(
        *(
            statement
            for table in ("journal", "postings", "identities")
            for statement in tampering(table, f"DELETE FROM ledger.{table}")
        ),
        *(f"DELETE FROM {table}" for (table,) in tables),
    )
