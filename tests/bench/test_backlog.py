"""Fault checklist 34 and 36: a backlog is caught up with while balances are read; what is accepted is not yet booked.

Publishing is quick, booking is what counts: both times stand in one line, and neither without the other.
"""

import time
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.bench.load import ACCOUNTS, SPAN_S, START_S, batches
from tests.chaos.workers import ended
from tests.commands.running import finish, start
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, Ledger, granted, told

from gpuledger.database.engine import reading
from gpuledger.events import budget
from gpuledger.events.envelope import encode
from gpuledger.kernel.accounts import lineage
from gpuledger.ledger import queries
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.streams.files import FileBroker
from gpuledger.streams.protocol import Message
from gpuledger.streams.topics import SCHEDULER_EVENTS

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

MESSAGES = {"short": 20_000, "full": 1_000_000}
BATCH_RUNS = 500
PERIOD = "2026-11"
NOW_S = START_S + SPAN_S + 86_400
LEAVES = [f"org/team{number}" for number in range(ACCOUNTS)]


class Look(NamedTuple):
    """What was seen of the ledger at one moment of the catching up."""

    at_s: float
    booked: int
    waiting: int | None
    rows: int
    read_s: float


def _publish(broker: FileBroker, count: int) -> float:
    """Put messages on the topic, safe on disk; return how long that took."""
    broker.ensure_topics([SCHEDULER_EVENTS])
    events = (event for batch in batches(BATCH_RUNS) for event in batch)
    messages = [
        Message(CLUSTER, encode(id=event.id, source=event.source, at_s=event.at_s, data=event.data))
        for event in islice(events, count)
    ]
    publisher = broker.publisher()
    began = time.perf_counter()
    publisher.publish(SCHEDULER_EVENTS, messages)
    publisher.flush()
    took_s = time.perf_counter() - began
    publisher.close()
    return took_s


def _look(ledger: Ledger, number: int) -> Look:
    """Read one balance, and in another transaction how far the worker is."""
    began = time.perf_counter()
    with reading(ledger.engine) as reader:
        found = balance(reader, LEAVES[number % ACCOUNTS], BalanceQuery(CLUSTER), NOW_S, ledger.calendar)
    read_s = time.perf_counter() - began
    assert found.granted_gpu_ms == 10**5 * GPU_HOUR
    with reading(ledger.engine) as reader:
        status = next(iter(queries.streams(reader)), None)
        rows = sum(book.rows for book in queries.book_heads(reader) if book.book == CLUSTER)
    booked, waiting = (status.position, status.waiting) if status else (0, None)
    return Look(time.perf_counter(), booked, waiting, rows, read_s)


def test_a_backlog_is_caught_up_with_while_balances_are_read(
    ledger: Ledger, tmp_path: Path, test_form: str
) -> None:
    count = MESSAGES[test_form]
    accounts = sorted({node for leaf in LEAVES for node in lineage(leaf)})
    ledger.append(*(told(0, budget.AccountCreated(account=account)) for account in accounts))
    ledger.append(*(told(0, granted(leaf, PERIOD, 10**5 * GPU_HOUR)) for leaf in LEAVES))
    published_s = _publish(FileBroker(tmp_path / "streams"), count)
    settings = {"GPULEDGER_HOME": str(tmp_path), "GPULEDGER_DATABASE_URL": ledger.url}
    looks: list[Look] = []
    with ended(start("ingest", "--once", "--no-tick", settings=settings)) as process:
        while process.poll() is None:
            looks.append(_look(ledger, len(looks)))
            time.sleep(0.02)
        assert finish(process).status == 0
    looks.append(_look(ledger, len(looks)))

    first = next(look for look in looks if look.booked)
    drained = next(look for look in looks if look.booked == count)
    rate = (count - first.booked) / (drained.at_s - first.at_s)
    reads_ms = sorted(1000 * look.read_s for look in looks if 0 < look.booked < count)
    print(
        f"\n{count:,} messages accepted in {published_s:.1f} s, booked in another {drained.at_s - looks[0].at_s:.1f} s"
        f" at {rate:,.0f}/s; balances read {len(reads_ms)} times meanwhile:"
        f" p50 {reads_ms[len(reads_ms) // 2]:.1f} ms, p99 {reads_ms[len(reads_ms) * 99 // 100]:.1f} ms"
    )
    assert all(one.booked <= other.booked and one.rows <= other.rows for one, other in pairwise(looks))
    assert len({look.booked for look in looks}) > 3, "the position moves with each batch, for whoever watches"
    assert {look.booked + look.waiting for look in looks if look.waiting is not None} == {count}
    assert (looks[-1].booked, looks[-1].waiting, looks[-1].rows) == (count, 0, count + len(LEAVES))
