"""A cluster at work, as a scheduler asks about it: accounts with budgets and a limit, open runs, work that waits."""

import datetime as dt

from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    granted,
    registered,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.events import budget
from gpuledger.identity import store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role
from gpuledger.identity.store import Order
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.clock import SystemClock, seconds

ROOT = "org"
LEAVES = [f"org/program{number % 4}/team{number}" for number in range(32)]
OPEN_RUNS = 400
STANDING = [f"waits{number}" for number in range(16)]
"""Workloads that wait; who is admitted, and how long their answers stand, is the bench's business."""


def book_a_cluster(ledger: Ledger) -> None:
    """Book it in a ledger whose clock is the machine's: what is asked is what was used up to now."""
    ledger.clock = SystemClock()  # type: ignore[assignment] - both tell the time
    now_s = seconds(ledger.clock.now())
    period = ledger.calendar.period_of(ledger.calendar.day_of(now_s))
    accounts = sorted({node for leaf in LEAVES for node in lineage(leaf)})
    ledger.append(*(told(0, budget.AccountCreated(account=account)) for account in accounts))
    limit = budget.Granted(
        account=ROOT,
        cluster=CLUSTER,
        period=period,
        gpu_ms=10**6 * GPU_HOUR,
        limit=True,
        reason="test",
        by="test",
    )
    grants = [told(0, granted(leaf, period, 10**5 * GPU_HOUR)) for leaf in LEAVES]
    ledger.append(told(0, registered("h1", 8)), told(0, limit), *grants)
    runs = []
    for number in range(OPEN_RUNS):
        leaf, at_s = LEAVES[number % len(LEAVES)], now_s - HOUR - number
        runs += [told(at_s, submitted(f"runs{number}", account=leaf)), told(at_s, started(f"runs{number}"))]
    waits = [
        told(now_s - HOUR, submitted(name, account=LEAVES[number], minimum_runtime_s=HOUR))
        for number, name in enumerate(STANDING)
    ]
    ledger.append(*runs, *waits)


def scheduler_token(ledger: Ledger) -> str:
    """Make a token for the cluster's scheduler."""
    order = Order("the scheduler", Role.SCHEDULER, Scope(None, (CLUSTER,)), dt.timedelta(days=1), "test")
    with writing(ledger.engine) as writer:
        text, _ = store.create(writer, order, SystemClock().now())
    return text
