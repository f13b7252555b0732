"""A small book and warehouse written straight into the tables, whose every figure can be told in advance.

``alpha``: 64 GPUs, six accounts, sixty days from 2026-01-10, samples, two budget periods, one policy cycle.
``beta``: runs but no inventory and no samples, so that three of its four layers are unknown.
``gamma``: a book, and nothing rolled up.
"""

import datetime as dt
import json
from typing import Any

import sqlalchemy as sa

from gpuledger.ledger import stream_tables
from gpuledger.ledger import tables as ledger
from gpuledger.ledger.policy_tables import policy_status
from gpuledger.warehouse import tables as warehouse

START = dt.datetime(2026, 1, 10, tzinfo=dt.UTC)
DAYS = 60
SEEN_AT = dt.datetime(2026, 3, 11, 6, tzinfo=dt.UTC)
"""When the warehouse last looked at the book."""

HOUR = 3_600_000
GPUS = 64
NO_INVENTORY = "no inventory: name the cluster's GPUs in a budget file (gpuledger budget apply FILE)"

SHARES = {
    "alpha/language/dialogue": 24,
    "alpha/language/translation": 8,
    "alpha/vision/segmentation": 12,
    "alpha/vision/video": 8,
    "alpha/biology/folding": 8,
    "alpha/robotics": 4,
}
"""Account -> GPUs it is entitled to."""


def small_book(engine: sa.Engine) -> None:
    """Fill an empty, migrated database."""
    with engine.begin() as connection:
        _ledger(connection)
        _warehouse(connection)
        _budgets(connection)
        _waits_and_waste(connection)


def _ledger(connection: sa.Connection) -> None:
    books = [("~org", 9), ("alpha", 1200), ("beta", 40), ("gamma", 2)]
    rows = [
        {"book": book, "last_seq": seq, "head": bytes([len(book)]) * 32, "last_recorded_at": SEEN_AT}
        for book, seq in books
    ]
    connection.execute(sa.insert(ledger.books), rows)
    accounts = [*SHARES, "beta/team"]
    connection.execute(
        sa.insert(ledger.accounts), [{"account": a, "path": a, "created_seq": 1} for a in accounts]
    )
    segments = [
        _segment("alpha", account, gpus, START, START + dt.timedelta(hours=10))
        for account, gpus in SHARES.items()
    ]
    segments.append(_segment("beta", "beta/team", 4, START, START + dt.timedelta(hours=5)))
    connection.execute(sa.insert(ledger.segments), segments)
    balances = [
        _movement("alpha/robotics", "budget", "grant", 1000),
        _movement("alpha/robotics", "spent", "charge", 250),
        _movement("alpha/language/dialogue", "budget", "grant", 4000),
        _movement("alpha/language/dialogue", "spent", "charge", 4500),
    ]
    connection.execute(sa.insert(ledger.balances), balances)
    cycle = _cycle()
    connection.execute(sa.select(sa.func.ledger.make_partitions(cycle["recorded_at"])))
    connection.execute(sa.insert(ledger.journal), [cycle])
    figures = {
        "waiting": {"1": 0, "2-8": 3}, "orders": {"start": 2}, "owed_gpu_ms": 7000, "over_service_gpu_ms": 5000,
    }  # fmt: skip
    status = {
        "book": "alpha", "cycle": "alpha@1773205200", "decided_at": SEEN_AT, "recorded_at": SEEN_AT, "took_ms": 1500,
        "cycles": 1, "figures": figures,
    }  # fmt: skip
    connection.execute(sa.insert(policy_status), [status])
    letter = {
        "received_at": SEEN_AT, "stream": "import/philly/alpha", "partition": 0, "position": 7, "place": "a.csv:7",
        "code": "end-before-start", "reason": "the end is before the start", "hint": "mend the row", "raw": b"x",
        "raw_digest": b"y", "context": {},
    }  # fmt: skip
    connection.execute(sa.insert(stream_tables.dead_letters), [letter])
    stream = {
        "consumer": "ledger", "stream": "gpu.scheduler.events", "partition": 0, "position": 1200, "epoch": 3,
        "end_position": 1234, "seen_at": SEEN_AT, "published_at": SEEN_AT,
    }  # fmt: skip
    connection.execute(sa.insert(stream_tables.stream_offsets), [stream])


def _segment(book: str, account: str, gpus: int, start: dt.datetime, end: dt.datetime) -> dict[str, Any]:
    name = f"{account}-1"
    return {
        "book": book, "workload": name, "run": name, "account": account, "klass": "allocated", "user_token": "u1",
        "gpus_milli": gpus * 1000, "gpu_model": "H100", "hosts": ["node1"], "from_at": start, "to_at": end,
        "estimated": False, "since_seq": 1,
    }  # fmt: skip


def _movement(account: str, pot: str, code: str, gpu_hours: int) -> dict[str, Any]:
    return {
        "book": "alpha", "commodity": "gpu_ms_weighted", "account": account, "period": "2026-02", "pot": pot,
        "code": code, "amount": gpu_hours * HOUR * 1000,
    }  # fmt: skip


def _cycle() -> dict[str, Any]:
    record = {
        "cluster": "alpha", "cycle": "alpha@1773205200", "supply_gpus": GPUS,
        "allocations": [
            {"account": account, "share_ppm": gpus * 1_000_000 // GPUS, "used_gpu_ms": gpus * 100 * HOUR,
             "entitled_gpu_ms": gpus * 168 * HOUR, "ratio": "0.595238", "demand_gpus": 2 * gpus, "issued_gpus": gpus}
            for account, gpus in SHARES.items()
        ],
        "decisions": [],
    }  # fmt: skip
    body = {
        "cluster": "alpha", "cycle": record["cycle"], "sequences": {"alpha": 1199}, "config_version": "1",
        "input_digest": "00", "record": record,
    }  # fmt: skip
    return {
        "book": "alpha", "seq": 1200, "recorded_at": SEEN_AT, "effective_at": SEEN_AT, "type": "allocation.issued",
        "source": "gpuledger/policy", "event_id": "cycle-1", "digest": b"d" * 32, "body": json.loads(json.dumps(body)),
        "row_hash": b"r" * 32,
    }  # fmt: skip


def _warehouse(connection: sa.Connection) -> None:
    hours = [START + dt.timedelta(hours=n) for n in range(24 * DAYS)]
    alpha = [_alpha_layer() | {"hour_at": at} | _load(at) for at in hours]
    beta = [_beta_layer() | {"hour_at": at} for at in hours[:240]]
    connection.execute(sa.insert(warehouse.layer_metrics_hour), [*alpha, *beta])
    days = [_day(rows) for rows in (alpha[n : n + 24] for n in range(0, len(alpha), 24))]
    beta_days = [_day(rows) for rows in (beta[n : n + 24] for n in range(0, len(beta), 24))]
    connection.execute(sa.insert(warehouse.layer_metrics_day), [*days, *beta_days])
    owed = [row for at in hours for row in _owed(at)]
    connection.execute(sa.insert(warehouse.owed_hour), owed)
    seen = [{"cluster": c, "ledger_seq": 1, "as_of_at": SEEN_AT} for c in ("alpha", "beta")]
    connection.execute(sa.insert(warehouse.watermark), seen)


def _alpha_layer() -> dict[str, Any]:
    return {
        "cluster": "alpha", "installed_gpu_ms": GPUS * HOUR, "unhealthy_gpu_ms": HOUR, "maintenance_gpu_ms": HOUR,
        "unhealthy_occupied_gpu_ms": 0, "overhead_gpu_ms": 0, "reserved_gpu_ms": 0, "lost_gpu_ms": 0,
        "unknown_gpu_ms": 0, "residual_gpu_ms": 0, "reason": None,
    }  # fmt: skip


def _load(at: dt.datetime) -> dict[str, int]:
    """Weekends are quieter, and from the fifth week on there is more to do."""
    day = (at - START).days
    allocated = 40 + (8 if day >= 28 else 0) - (6 if at.weekday() >= 5 else 0)
    unallocated = 8 + at.hour % 3
    occupied = allocated + unallocated
    sampled = occupied - 4
    return {
        "allocated_gpu_ms": allocated * HOUR, "unallocated_gpu_ms": unallocated * HOUR,
        "free_gpu_ms": (GPUS - 2 - occupied) * HOUR, "owed_gpu_ms": 52 * HOUR,
        "delivered_gpu_ms": allocated * HOUR,
        "hourly_met_gpu_ms": min(allocated, 52) * HOUR, "sampled_gpu_ms": sampled * HOUR,
        "used_gpu_ms": sampled * HOUR * (58 + day % 9) // 100,
    }  # fmt: skip


def _beta_layer() -> dict[str, Any]:
    capacity = dict.fromkeys((
        "installed_gpu_ms", "unhealthy_gpu_ms", "maintenance_gpu_ms", "unhealthy_occupied_gpu_ms", "overhead_gpu_ms",
        "reserved_gpu_ms", "free_gpu_ms", "lost_gpu_ms", "unknown_gpu_ms", "residual_gpu_ms", "owed_gpu_ms",
        "hourly_met_gpu_ms",
    ))  # fmt: skip
    return {
        **capacity, "cluster": "beta", "allocated_gpu_ms": 4 * HOUR, "unallocated_gpu_ms": 0,
        "delivered_gpu_ms": 4 * HOUR, "sampled_gpu_ms": 0, "used_gpu_ms": 0, "reason": NO_INVENTORY,
    }  # fmt: skip


def _day(rows: list[dict[str, Any]]) -> dict[str, Any]:
    first = rows[0]
    sums = {
        name: None if value is None else sum(row[name] for row in rows)
        for name, value in first.items()
        if name.endswith("_gpu_ms")
    }
    return {"cluster": first["cluster"], "reason": first["reason"], "day": first["hour_at"].date(), **sums}


def _owed(at: dt.datetime) -> list[dict[str, Any]]:
    busy = (at - START).days >= 28
    rows = []
    for n, (account, gpus) in enumerate(SHARES.items()):
        demand = gpus * 2 if n % 2 == 0 else gpus * 3 // 4
        owed = min(gpus, demand)
        delivered = owed - (n % 3) * (1 if busy else 2) // 2
        rows.append(
            {"cluster": "alpha", "hour_at": at, "account": account, "entitlement_gpu_ms": gpus * HOUR,
             "demand_gpu_ms": demand * HOUR, "owed_gpu_ms": owed * HOUR, "delivered_gpu_ms": delivered * HOUR}
        )  # fmt: skip
    return rows


def _budgets(connection: sa.Connection) -> None:
    rows = [
        _budget(account, gpus, n, period, hours)
        for period, hours in (("2026-01", 744), ("2026-02", 672))
        for n, (account, gpus) in enumerate(SHARES.items())
    ]
    connection.execute(sa.insert(warehouse.budget_vs_actual), rows)
    unknown = {name: None for name in rows[0] if name.startswith("variance_")}
    beta = {**rows[0], **unknown, "cluster": "beta", "period": "2026-01", "account": "beta/team",
            "budget_gpu_ms": 0, "charged_gpu_ms": 20 * HOUR, "available_gpu_ms": -20 * HOUR,
            "entitlement_gpu_ms": None, "demand_gpu_ms": None, "owed_gpu_ms": None,
            "delivered_gpu_ms": None}  # fmt: skip
    connection.execute(sa.insert(warehouse.budget_vs_actual), [beta])


def _budget(account: str, gpus: int, n: int, period: str, hours: int) -> dict[str, Any]:
    budget, credit = gpus * hours, 12 if n == 1 else 0
    entitlement = budget * 62 // 64
    owed = entitlement - (budget // 5 if n % 2 else 0)
    # The first account was given more than it was owed: unused time of others flowed to it.
    gross = owed + budget // 8 if n == 0 else owed - budget // (20 + n)
    delivered = gross - credit
    amounts = {
        "budget": budget, "transferred": 0, "charged": gross, "held": gpus, "credited": credit, "expired": 0,
        "available": budget + credit - gross - gpus, "unallocated": budget // 10, "entitlement": entitlement,
        "demand": owed + budget // 4, "owed": owed, "delivered": delivered, "variance_transfer": 0,
        "variance_expiry": 0, "variance_capacity": budget - entitlement, "variance_demand": entitlement - owed,
        "variance_scheduler": owed - gross, "variance_credit": credit,
    }  # fmt: skip
    return {
        "cluster": "alpha", "period": period, "account": account,
        **{f"{name}_gpu_ms": hours_ * HOUR for name, hours_ in amounts.items()},
    }  # fmt: skip


def _waits_and_waste(connection: sa.Connection) -> None:
    """Two days of waits, and a February of charged time of which robotics was measured."""
    day = SEEN_AT.date() - dt.timedelta(days=1)
    waits = [
        _waits("alpha/language/dialogue", "allocated", "3-4", day, [0, 60, 600], [300], waiting=1),
        _waits("alpha/language/dialogue", "allocated", "3-4", day - dt.timedelta(days=1), [120], []),
        _waits("alpha/robotics", "allocated", "<1", day, [5], []),
        _waits("alpha/robotics", "unallocated", "17-32", day, [], [7200], waiting=1),
    ]
    connection.execute(sa.insert(warehouse.queue_wait_day), waits)
    waste = [
        _wasted("alpha/robotics", "u1", 5, allocated=100, sampled=80, used=30, idle=40, squatted=30, low=10),
        _wasted("alpha/robotics", "u2", 6, allocated=50, sampled=50, used=45, idle=0, squatted=0, low=0),
        _wasted("alpha/biology/folding", "u3", 6, allocated=20, sampled=0, used=0, idle=0, squatted=0, low=0),
    ]
    connection.execute(sa.insert(warehouse.waste_day), waste)


def _waits(
    account: str,
    klass: str,
    size: str,
    day: dt.date,
    started: list[int],
    others: list[int],
    *,
    waiting: int = 0,
) -> dict[str, Any]:
    return {
        "cluster": "alpha", "day": day, "account": account, "klass": klass, "size": size, "turn": "first",
        "request_count": len(started) + len(others), "started_count": len(started),
        "at_once_count": started.count(0), "waiting_count": waiting, "withdrawn_count": len(others) - waiting,
        "p50_s": None, "p90_s": None, "p99_s": None, "longest_s": max([*started, *others]),
        "started_after_s": started, "unstarted_for_s": others, "as_of_at": SEEN_AT,
    }  # fmt: skip


def _wasted(account: str, user: str, day: int, **gpu_hours: int) -> dict[str, Any]:
    amounts = {f"{name}_gpu_ms": hours * HOUR for name, hours in gpu_hours.items()}
    return {
        "cluster": "alpha", "day": dt.date(2026, 2, day), "account": account, "user_token": user, **amounts,
        "squatting_run_count": int(gpu_hours["squatted"] > 0),
    }  # fmt: skip
