"""Prometheus metrics: where each book stands, what waits for a person, how the API answers.

No label names a user, a job or an account. A scrape never fails because the database is away: it says so.
"""

import datetime as dt
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuledger.api.context import Context
from gpuledger.database.engine import reading
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import GpuledgerError
from gpuledger.ledger import policy_status, queries, watermarks

MetricName = Literal[
    "gpuledger_build",
    "gpuledger_database_up",
    "gpuledger_journal_rows",
    "gpuledger_book_head_timestamp_seconds",
    "gpuledger_book_head_age_seconds",
    "gpuledger_book_writers_waiting",
    "gpuledger_book_collisions",
    "gpuledger_dead_letters",
    "gpuledger_stream_position",
    "gpuledger_stream_records",
    "gpuledger_stream_takeovers",
    "gpuledger_stream_waiting_records",
    "gpuledger_stream_seen_timestamp_seconds",
    "gpuledger_stream_newest_record_timestamp_seconds",
    "gpuledger_stream_newest_record_age_seconds",
    "gpuledger_source_told_until_timestamp_seconds",
    "gpuledger_policy_leader",
    "gpuledger_policy_cycles",
    "gpuledger_policy_amendments",
    "gpuledger_policy_cycle_timestamp_seconds",
    "gpuledger_policy_cycle_age_seconds",
    "gpuledger_policy_cycle_duration_seconds",
    "gpuledger_policy_waiting_workloads",
    "gpuledger_policy_orders",
    "gpuledger_policy_owed_gpu_seconds",
    "gpuledger_policy_over_service_gpu_seconds",
    "gpuledger_http_requests",
    "gpuledger_http_request_duration_seconds",
]
"""Every metric there is; counters gain ``_total``, the build ``_info``."""

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


_HELP: dict[MetricName, str] = {
    "gpuledger_build": "The version that answers.",
    "gpuledger_database_up": "1 when the database answered this scrape.",
    "gpuledger_journal_rows": "Rows of a book's journal.",
    "gpuledger_book_head_timestamp_seconds": "When a book's newest row was recorded, as Unix time.",
    "gpuledger_book_head_age_seconds": "Seconds since a book's newest row was recorded.",
    "gpuledger_book_writers_waiting": "Transactions that wait for a book's lock.",
    "gpuledger_book_collisions": "Transactions on a book that the database gave up for the sake of others, and that"
    " were made again.",
    "gpuledger_dead_letters": "Dead letters that wait for a person.",
    "gpuledger_stream_position": "Next record of a partition that a consumer is to book.",
    "gpuledger_stream_records": "Records of a partition that a consumer has booked; its rate is the throughput.",
    "gpuledger_stream_takeovers": "Workers that have claimed a partition; each fenced the one before.",
    "gpuledger_stream_waiting_records": "Records that waited to be booked when the worker looked last.",
    "gpuledger_stream_seen_timestamp_seconds": "When the worker of a partition looked last, as Unix time.",
    "gpuledger_stream_newest_record_timestamp_seconds": "When the newest record booked was published, as Unix time.",
    "gpuledger_stream_newest_record_age_seconds": "Seconds since the newest record booked was published; while some"
    " wait, how late the books are.",
    "gpuledger_source_told_until_timestamp_seconds": "Up to when a source has told all it knows, as Unix time.",
    "gpuledger_policy_leader": "1 when a process leads a cluster's policy, 0 when nobody does.",
    "gpuledger_policy_cycles": "Cycles of the policy that were recorded for a cluster.",
    "gpuledger_policy_amendments": "Amendments of cycles that were recorded: what was submitted between two.",
    "gpuledger_policy_cycle_timestamp_seconds": "The instant that the newest cycle decided for, as Unix time.",
    "gpuledger_policy_cycle_age_seconds": "Seconds since that instant.",
    "gpuledger_policy_cycle_duration_seconds": "How long the newest cycle took, from reading the state to its record.",
    "gpuledger_policy_waiting_workloads": "Workloads that wait after the newest cycle, by whole GPUs asked for.",
    "gpuledger_policy_orders": "Starts and preemptions that the newest cycle ordered.",
    "gpuledger_policy_owed_gpu_seconds": "GPU-time that accounts with demand have used less than they were entitled to"
    " over the window, in all.",
    "gpuledger_policy_over_service_gpu_seconds": "GPU-time that accounts have used beyond it, in all.",
    "gpuledger_http_requests": "Requests answered, by method, route and status.",
    "gpuledger_http_request_duration_seconds": "Time from request to last byte, by method and route.",
}


_COUNTERS: tuple[MetricName, ...] = ("gpuledger_stream_records", "gpuledger_stream_takeovers")
_GAUGES: tuple[MetricName, ...] = (
    "gpuledger_stream_position",
    "gpuledger_stream_waiting_records",
    "gpuledger_stream_seen_timestamp_seconds",
    "gpuledger_stream_newest_record_timestamp_seconds",
    "gpuledger_stream_newest_record_age_seconds",
)


def help_of(name: MetricName) -> str:
    """Return the sentence that explains a metric."""
    return _HELP[name]


class BookCollector(Collector):
    """Reads the books at each scrape."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> list[Metric]:
        """Return nothing, so that registering does not read the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what the database knows now."""
        build = InfoMetricFamily("gpuledger_build", help_of("gpuledger_build"))
        build.add_metric([], {"version": version("gpuledger")})
        yield build
        try:
            found = self._read()
        except (GpuledgerError, Exception):  # noqa: BLE001 - a scrape must answer whatever is broken
            found = None
        up = GaugeMetricFamily("gpuledger_database_up", help_of("gpuledger_database_up"))
        up.add_metric([], 0 if found is None else 1)
        yield up
        yield from found or ()

    def _read(self) -> list[Metric]:
        with reading(self._context.engine) as reader:
            books, dead = queries.book_heads(reader), queries.dead_letter_count(reader)
            streams, waiting = queries.streams(reader), queries.writers_waiting(reader)
            marks, policy = watermarks.watermarks(reader), policy_status.read(reader)
        rows = GaugeMetricFamily("gpuledger_journal_rows", help_of("gpuledger_journal_rows"), labels=["book"])
        heads = GaugeMetricFamily(
            "gpuledger_book_head_timestamp_seconds",
            help_of("gpuledger_book_head_timestamp_seconds"),
            labels=["book"],
        )
        ages = GaugeMetricFamily(
            "gpuledger_book_head_age_seconds", help_of("gpuledger_book_head_age_seconds"), labels=["book"]
        )
        queues = GaugeMetricFamily(
            "gpuledger_book_writers_waiting", help_of("gpuledger_book_writers_waiting"), labels=["book"]
        )
        collisions = CounterMetricFamily(
            "gpuledger_book_collisions", help_of("gpuledger_book_collisions"), labels=["book"]
        )
        now = self._context.clock.now()
        for status in books:
            collisions.add_metric([status.book], status.collisions)
            queues.add_metric([status.book], waiting[status.book])
            rows.add_metric([status.book], status.rows)
            heads.add_metric([status.book], status.last_recorded_at.timestamp())
            ages.add_metric([status.book], (now - status.last_recorded_at).total_seconds())
        letters = GaugeMetricFamily("gpuledger_dead_letters", help_of("gpuledger_dead_letters"))
        letters.add_metric([], dead)
        return [
            rows,
            heads,
            ages,
            queues,
            collisions,
            letters,
            _told_until(marks),
            *_backlog(streams, now),
            *_policy(policy, now),
        ]


def _told_until(marks: Iterable[watermarks.Watermark]) -> Metric:
    name: MetricName = "gpuledger_source_told_until_timestamp_seconds"
    found = GaugeMetricFamily(name, help_of(name), labels=["book", "source"])
    for mark in marks:
        found.add_metric([mark.book, mark.source], mark.told_until_at.timestamp())
    return found


def _backlog(streams: Iterable[queries.StreamStatus], now: dt.datetime) -> list[Metric]:
    labels = ["consumer", "stream", "partition"]
    records, takeovers = (CounterMetricFamily(name, help_of(name), labels=labels) for name in _COUNTERS)
    positions, waiting, seen, newest, ages = (
        GaugeMetricFamily(name, help_of(name), labels=labels) for name in _GAUGES
    )
    for status in streams:
        of = [status.consumer, status.stream, str(status.partition)]
        positions.add_metric(of, status.position)
        records.add_metric(of, status.position)
        takeovers.add_metric(of, status.takeovers)
        if status.waiting is not None and status.seen_at is not None:
            waiting.add_metric(of, status.waiting)
            seen.add_metric(of, status.seen_at.timestamp())
        if status.published_at is not None:
            newest.add_metric(of, status.published_at.timestamp())
            ages.add_metric(of, (now - status.published_at).total_seconds())
    return [positions, records, takeovers, waiting, seen, newest, ages]


def _policy(statuses: Iterable[policy_status.Status], now: dt.datetime) -> list[Metric]:
    def gauge(name: MetricName, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(name, help_of(name), labels=["cluster", *labels])

    led, decided = gauge("gpuledger_policy_leader"), gauge("gpuledger_policy_cycle_timestamp_seconds")
    ages, took = gauge("gpuledger_policy_cycle_age_seconds"), gauge("gpuledger_policy_cycle_duration_seconds")
    waiting, orders = (
        gauge("gpuledger_policy_waiting_workloads", "gpus"),
        gauge("gpuledger_policy_orders", "action"),
    )
    owed, over = (
        gauge("gpuledger_policy_owed_gpu_seconds"),
        gauge("gpuledger_policy_over_service_gpu_seconds"),
    )
    name: MetricName = "gpuledger_policy_cycles"
    cycles = CounterMetricFamily(name, help_of(name), labels=["cluster"])
    name = "gpuledger_policy_amendments"
    amendments = CounterMetricFamily(name, help_of(name), labels=["cluster"])
    for status in statuses:
        of = [status.cluster]
        led.add_metric(of, status.leader is not None)
        cycles.add_metric(of, status.cycles)
        amendments.add_metric(of, status.amendments)
        if status.newest is None:
            continue
        decided.add_metric(of, status.newest.decided_at.timestamp())
        ages.add_metric(of, (now - status.newest.decided_at).total_seconds())
        took.add_metric(of, status.newest.took_ms / 1000)
        for size, workloads in status.figures["waiting"].items():
            waiting.add_metric([*of, size], workloads)
        for action, number in status.figures["orders"].items():
            orders.add_metric([*of, action], number)
        owed.add_metric(of, status.figures["owed_gpu_ms"] / GPU_MILLI)
        over.add_metric(of, status.figures["over_service_gpu_ms"] / GPU_MILLI)
    return [led, cycles, amendments, decided, ages, took, waiting, orders, owed, over]


class Metrics:
    """One registry per application, and the middleware that counts its requests."""

    def __init__(self, context: Context) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(BookCollector(context))
        self.requests = Counter(
            "gpuledger_http_requests",
            help_of("gpuledger_http_requests"),
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "gpuledger_http_request_duration_seconds",
            help_of("gpuledger_http_request_duration_seconds"),
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class CountRequests:
    """ASGI middleware: count and time every request under the template of its route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500
        began = time.perf_counter()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            # The template, never the path: a path names accounts, and anybody can invent one.
            route = getattr(scope.get("route"), "path_format", "unmatched")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(method, route).observe(time.perf_counter() - began)
