"""Facts put straight into the ledger's projections, and the warehouse's rows read back."""

import datetime as dt
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = dt.date(2024, 3, 1)
START_S = int((dt.datetime(2024, 3, 1, tzinfo=dt.UTC) - EPOCH).total_seconds())
HOUR_S, DAY_S = 3_600, 86_400
TABLES = (
    "usage_bucket", "usage_hour", "owed_hour", "gpu_bucket", "gpu_hour", "layer_metrics_hour", "layer_metrics_day",
    "budget_vs_actual", "forecast", "queue_wait_day", "waste_day", "host_health_day",
)  # fmt: skip


@dataclass(frozen=True)
class Segment:
    account: str
    gpus_milli: int
    from_s: int
    to_s: int | None
    klass: str = "allocated"
    hosts: tuple[str, ...] = ()
    run: str = "r1"
    workload: str | None = None  # one of its own
    user: str = "-"
    gpu_model: str | None = None


@dataclass(frozen=True)
class Wait:
    account: str
    gpus_milli: int
    from_s: int
    to_s: int | None
    minimum_runtime_s: int = 3_600
    workload: str | None = None
    gpu_model: str | None = None
    began_s: int | None = None


@dataclass(frozen=True)
class Sample:
    """What a device said over five minutes: how much time it was seen for, and in how much of it it worked."""

    workload: str
    at_s: int
    gpu_ms: int
    percent: int
    run: str = "r1"
    gpu: str = "g"


@dataclass(frozen=True)
class Host:
    name: str
    gpus: int
    state: str
    from_s: int
    to_s: int | None = None
    gpu_model: str = "m"


@dataclass(frozen=True)
class Share:
    account: str
    share: int
    from_s: int


@dataclass
class Facts:
    """What a test's ledger holds; instants in seconds since the epoch."""

    segments: list[Segment] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    accounts: list[str] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    timezone: str | None = None
    cluster: str = "c"


def at(seconds: int | None) -> dt.datetime | None:
    return None if seconds is None else EPOCH + dt.timedelta(seconds=seconds)


class Database:
    """A migrated database of a test's own, written as its owner."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sa.create_engine(url, poolclass=sa.NullPool)

    def execute(self, sql: str, rows: Iterable[dict[str, Any]] | None = None, **values: object) -> None:
        with self.engine.begin() as connection:
            if rows is None:
                connection.execute(sa.text(sql), values)
            elif listed := list(rows):
                connection.execute(sa.text(sql), listed)

    def query(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(sql), values)]

    def clear(self) -> None:
        tables = ["segments", "waits", "hosts", "shares", "accounts", "organisation", "balances", "books"]
        ledger = ", ".join(f"ledger.{name}" for name in tables)
        warehouse = ", ".join(f"warehouse.{name}" for name in (*TABLES, "watermark"))
        self.execute(f"TRUNCATE {ledger}, telemetry.buckets, telemetry.handles, {warehouse}")

    def put(self, facts: Facts) -> None:
        book = facts.cluster
        self.execute(
            "INSERT INTO ledger.books (book, last_seq, head, last_recorded_at) VALUES (:b, 1, '', now())"
            " ON CONFLICT DO NOTHING",
            b=book,
        )
        self.execute(
            "INSERT INTO ledger.segments (book, workload, run, account, class, user_token, gpus_milli, hosts,"
            " gpu_model, from_at, to_at, estimated, since_seq)"
            " VALUES (:b, :w, :run, :account, :klass, :user, :milli, :hosts, :model, :f, :t, false, 1)",
            [
                {"b": book, "w": s.workload or f"w{n}", "run": s.run, "account": s.account, "klass": s.klass,
                 "user": s.user,
                 "milli": s.gpus_milli, "hosts": list(s.hosts), "model": s.gpu_model, "f": at(s.from_s),
                 "t": at(s.to_s)}
                for n, s in enumerate(facts.segments)
            ],
        )  # fmt: skip
        self.execute(
            "INSERT INTO ledger.waits (book, workload, account, gpus_milli, gpu_model, minimum_runtime_s, priority,"
            " submitted_at, from_at, to_at, began_at, since_seq)"
            " VALUES (:b, :w, :account, :milli, :model, :minimum, 0, :f, :f, :t, :began, 1)",
            [
                {"b": book, "w": w.workload or f"q{n}", "account": w.account, "milli": w.gpus_milli,
                 "model": w.gpu_model, "minimum": w.minimum_runtime_s, "f": at(w.from_s), "t": at(w.to_s),
                 "began": at(w.began_s)}
                for n, w in enumerate(facts.waits)
            ],
        )  # fmt: skip
        self._install(book, facts.hosts)
        self.execute(
            "INSERT INTO ledger.shares (account, from_at, share, set_seq) VALUES (:a, :f, :s, :n)",
            [{"a": s.account, "f": at(s.from_s), "s": s.share, "n": n} for n, s in enumerate(facts.shares)],
        )
        self.execute(
            "INSERT INTO ledger.accounts (account, path, created_seq) VALUES (:a, :a, 1)",
            [{"a": account} for account in facts.accounts],
        )
        self.execute(
            "INSERT INTO telemetry.buckets (book, bucket_at, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms)"
            " VALUES (:b, :at, :g, :w, :run, 'gpu_util', :s, :u)",
            [
                {"b": book, "at": at(s.at_s), "g": s.gpu, "w": s.workload, "run": s.run, "s": s.gpu_ms,
                 "u": s.gpu_ms * s.percent * 10_000}
                for s in facts.samples
            ],
        )  # fmt: skip
        if facts.submitted:
            self._submit(book, facts.submitted)
        if facts.timezone:
            self.execute(
                "INSERT INTO ledger.organisation (set_seq, timezone, period) VALUES (1, :z, 'month')",
                z=facts.timezone,
            )

    def _install(self, book: str, hosts: list[Host]) -> None:
        self.execute(
            "INSERT INTO ledger.hosts (book, host, gpus, gpu_model, state, from_at, to_at, since_seq)"
            " VALUES (:b, :h, :g, :m, :s, :f, :t, 1)",
            [
                {"b": book, "h": h.name, "g": h.gpus, "m": h.gpu_model, "s": h.state, "f": at(h.from_s),
                 "t": at(h.to_s)}
                for h in hosts
            ],
        )  # fmt: skip

    def _submit(self, book: str, workloads: list[str]) -> None:
        """Say in the journal that somebody asked for the workloads; nothing is ever taken out of it."""
        self.execute("SELECT ledger.make_partitions(now())")
        self.execute(
            "INSERT INTO ledger.journal (book, seq, recorded_at, effective_at, type, source, event_id, digest,"
            " workload, body, row_hash)"
            " SELECT :b, coalesce(max(seq), 0) + 1, now(), now(), 'workload.submitted', 's', :w, '', :w, '{}', ''"
            " FROM ledger.journal WHERE book = :b HAVING coalesce(bool_and(workload <> :w), true)",
            [{"b": book, "w": workload} for workload in workloads],
        )

    def rate(self, book: str, seq: int, from_s: int, weights: dict[str, int]) -> None:
        """Let a book take over a rate card from a moment on; later rows count more."""
        self.execute("SELECT ledger.make_partitions(now())")
        self.execute(
            "INSERT INTO ledger.journal (book, seq, recorded_at, effective_at, type, source, event_id, digest,"
            " body, row_hash) VALUES (:b, :n, now(), :f, 'policy.applied', 's', :n, '', CAST(:body AS json), '')",
            b=book,
            n=seq,
            f=at(from_s),
            body=json.dumps({"cluster": book, "org_seq": seq, "policy": "rate_card", "weights": weights}),
        )

    def book(self, facts: Facts, period: str) -> None:
        """Book the closed segments as charges of one period, in both commodities."""
        totals: dict[tuple[str, str], int] = {}
        for s in facts.segments:
            if s.to_s is not None:
                pot = "spent" if s.klass == "allocated" else "unallocated"
                totals[s.account, pot] = totals.get((s.account, pot), 0) + s.gpus_milli * (s.to_s - s.from_s)
        self.post(
            [
                (
                    facts.cluster,
                    commodity,
                    account,
                    period,
                    pot,
                    "charge" if pot == "spent" else pot,
                    amount * weight,
                )
                for (account, pot), amount in totals.items()
                for commodity, weight in (("gpu_ms", 1), ("gpu_ms_weighted", 1000))
            ]
        )

    def post(self, balances: Iterable[tuple[Any, ...]]) -> None:
        names = ("book", "commodity", "account", "period", "pot", "code", "amount")
        self.execute(
            f"INSERT INTO ledger.balances ({', '.join(names)}) VALUES ({', '.join(f':{n}' for n in names)})",
            [dict(zip(names, row, strict=True)) for row in balances],
        )

    def table(self, name: str) -> list[dict[str, Any]]:
        """Every row of a warehouse table, in a fixed order; instants as seconds."""
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text(f"SELECT * FROM warehouse.{name} ORDER BY 1, 2, 3")).mappings()
            return [{key: _plain(value) for key, value in row.items()} for row in rows]


def _plain(value: object) -> object:
    if isinstance(value, dt.datetime):
        return int((value - EPOCH).total_seconds())
    return value
