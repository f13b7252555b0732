"""An example of every answer, for the reference; the figures are of the bundled traces."""

from typing import Any

_AS_OF = "2026-12-01T09:00:00Z"
_WINDOW = {"from": "2017-10-01T00:00:00Z", "to": "2017-11-01T00:00:00Z", "timezone": "UTC"}
_HOUR = 3_600_000


_BALANCE = {
    "account": "philly/ee9e8c", "cluster": "philly", "period": "2017-10",
    "granted_gpu_ms": 120_000 * _HOUR, "transferred_gpu_ms": 0, "charged_gpu_ms": 90_000 * _HOUR,
    "held_gpu_ms": 800 * _HOUR, "credited_gpu_ms": 0, "expired_gpu_ms": 0, "available_gpu_ms": 29_200 * _HOUR,
    "unallocated_gpu_ms": 0, "binding_account": "philly/ee9e8c", "granted_gpu_hours": "120000.000",
    "transferred_gpu_hours": "0.000", "charged_gpu_hours": "90000.000", "held_gpu_hours": "800.000",
    "credited_gpu_hours": "0.000", "expired_gpu_hours": "0.000", "available_gpu_hours": "29200.000",
    "unallocated_gpu_hours": "0.000", "own_available_gpu_ms": 29_200 * _HOUR,
    "own_available_gpu_hours": "29200.000", "rolled_over_gpu_ms": 0, "rolled_over_gpu_hours": "0.000",
}  # fmt: skip
BALANCE = {**_BALANCE, "as_of": _AS_OF}
BALANCES = {"balances": [_BALANCE], "as_of": _AS_OF}

BALANCE_TREE = {
    "account": "philly", "cluster": "philly", "period": "2017-10",
    "nodes": [
        {**_BALANCE, "account": "philly", "binding_account": "philly", "depth": 0, "is_leaf": False},
        {**_BALANCE, "depth": 1, "is_leaf": True},
    ],
    "as_of": _AS_OF,
}  # fmt: skip

QUEUE = {
    "cluster": "philly", "cycle": "philly@2026-12-01T09:00:00Z#0123456789ab", "decided_at": "2026-12-01T09:00:00Z",
    "rows": [
        {"position": 1, "workload": "8850", "account": "philly/ee9e8c", "gpus_milli": 8000, "gpu_model": None,
         "minimum_runtime_s": 3600, "priority": 0, "submitted_at": "2026-12-01T08:40:00Z",
         "waits_since": "2026-12-01T08:40:00Z", "action": "start", "reason": "Starts on host m12.",
         "ratios": [{"account": "philly", "ratio": "0.981000"}, {"account": "philly/ee9e8c", "ratio": "0.418300"}]},
    ],
    "reason": None, "next": None, "as_of": _AS_OF,
}  # fmt: skip

OWED = {
    "rows": [
        {"key": "2017-10-02", "account": "philly/ee9e8c", "entitlement_gpu_ms": 1200 * _HOUR,
         "demand_gpu_ms": 900 * _HOUR, "owed_gpu_ms": 880 * _HOUR, "delivered_gpu_ms": 860 * _HOUR,
         "met_gpu_ms": 850 * _HOUR, "hours": 24, "hours_with_inventory": 24,
         "gpu_hours": {"entitlement": "1200.000", "demand": "900.000", "owed": "880.000", "delivered": "860.000",
                       "met": "850.000"}},
    ],
    "by": "day", "cluster": "philly", "account": None, **_WINDOW, "reading": "as_known", "next": None,
    "as_of": _AS_OF,
}  # fmt: skip

CYCLE = {
    "cluster": "philly", "cursor": 8841, "cycle": "7", "supply_gpus": 2490,
    "allocations": [
        {"account": "philly/ee9e8c", "share_ppm": 120_000, "used_gpu_ms": 21_000 * _HOUR,
         "entitled_gpu_ms": 50_198 * _HOUR, "ratio": "0.4183", "demand_gpus": 320, "issued_gpus": 298},
    ],
    "decisions": [], "reservations": [],
    "as_of": _AS_OF,
}  # fmt: skip

DIRECTIVES = {
    "cluster": "philly", "cursor": 8841, "cycle": "philly@2026-12-01T09:00:00Z#0123456789ab",
    "decided_at": "2026-12-01T09:00:00Z", "stale": False,
    "starts": [{"workload": "8850", "hosts": {"m12": 8000}, "reason": "Starts on host m12."}],
    "preemptions": [
        {"workload": "8790", "run": "1", "leave_by": "2026-12-01T09:01:00Z", "ends": False,
         "reason": "Leaves for 8851, whose account is further below its share."},
    ],
    "protected": [
        {"workload": "8802", "run": "1", "reason": "it is within its minimum runtime for 340 s more"},
    ],
    "as_of": _AS_OF,
}  # fmt: skip

USAGE = {
    "rows": [
        {"key": "philly/ee9e8c", "gpu_ms": 900 * _HOUR, "gpu_hours": "900.000", "used_gpu_ms": None,
         "coverage": None},
    ],
    "total_gpu_ms": 900 * _HOUR, "provisional_gpu_ms": 0, "estimated_gpu_ms": 0, "as_of": _AS_OF,
}  # fmt: skip

_LAYERS_AMOUNTS = {
    "installed_gpu_ms": 1000 * _HOUR, "healthy_gpu_ms": 980 * _HOUR, "unhealthy_occupied_gpu_ms": 0,
    "usable_gpu_ms": 980 * _HOUR,
    "occupied_gpu_ms": 931 * _HOUR, "occupied_with_inventory_gpu_ms": 931 * _HOUR,
    "allocated_gpu_ms": 760 * _HOUR, "unallocated_gpu_ms": 171 * _HOUR, "owed_gpu_ms": 800 * _HOUR,
    "delivered_gpu_ms": 760 * _HOUR, "window_met_gpu_ms": 740 * _HOUR, "sampled_gpu_ms": 0, "used_gpu_ms": 0,
    "residual_gpu_ms": 0,
}  # fmt: skip
LAYERS = {
    "rows": [
        {
            "key": "philly",
            "availability": "0.9800", "occupancy": "0.9500", "occupancy_with_overhead": "0.9500",
            "impact": {"window": "0.9250", "hourly": "0.9000", "raw": "0.9500"},
            "utilisation": {"value": None, "rung": "gpu_util", "coverage": "0.0000"},
            "reason": "no sample of utilisation in this window",
            "reasons": {"utilisation": "no sample of utilisation in this window"},
            **_LAYERS_AMOUNTS,
            "gpu_hours": {"installed": "1000.000", "healthy": "980.000"},
        },
    ],
    "by": "cluster", "cluster": "philly", **_WINDOW, "reading": "as_known", "as_of": _AS_OF,
    "targets": {"availability": "0.9800", "occupancy": None, "impact": "0.9500", "utilisation": None},
}  # fmt: skip

WAITS = {
    "rows": [
        {"key": "3-4", "request_count": 1200, "started_count": 1150, "at_once_count": 300, "waiting_count": 20,
         "withdrawn_count": 30, "p50_s": 90, "p90_s": 5400, "p99_s": 40_000, "longest_s": 172_800},
    ],
    "by": "size", "cluster": "philly", "account": None, "class": "allocated", **_WINDOW, "as_of": _AS_OF,
}  # fmt: skip

WASTE = {
    "rows": [
        {"key": "philly/ee9e8c", "cluster": "philly", "account": "philly/ee9e8c",
         "allocated_gpu_ms": 90_000 * _HOUR, "sampled_gpu_ms": 81_000 * _HOUR, "used_gpu_ms": 45_000 * _HOUR,
         "idle_gpu_ms": 8100 * _HOUR, "squatted_gpu_ms": 6000 * _HOUR, "low_gpu_ms": 4000 * _HOUR,
         "squatting_run_count": 41, "budget_gpu_ms": 120_000 * _HOUR, "coverage": "0.9000",
         "idle_of_sampled": "0.1000", "squatted_of_budget": "0.0500", "gpu_hours": {"squatted": "6000.000"}},
    ],
    "by": "account", "cluster": "philly", "account": None, "period": "2017-10", "periods": ["2017-10"], **_WINDOW,
    "as_of": _AS_OF,
}  # fmt: skip

_BUDGET_AMOUNTS = {
    "budget_gpu_ms": 1000 * _HOUR, "transferred_gpu_ms": 0, "charged_gpu_ms": 760 * _HOUR, "held_gpu_ms": 0,
    "credited_gpu_ms": 0, "expired_gpu_ms": 0, "available_gpu_ms": 240 * _HOUR, "unallocated_gpu_ms": 0,
    "entitlement_gpu_ms": 980 * _HOUR, "demand_gpu_ms": 900 * _HOUR, "owed_gpu_ms": 800 * _HOUR,
    "delivered_gpu_ms": 760 * _HOUR, "variance_transfer_gpu_ms": 0, "variance_expiry_gpu_ms": 0,
    "variance_capacity_gpu_ms": 20 * _HOUR, "variance_demand_gpu_ms": 180 * _HOUR,
    "variance_scheduler_gpu_ms": 40 * _HOUR, "variance_credit_gpu_ms": 0,
}  # fmt: skip
BUDGET_VERSUS_ACTUAL = {
    "rows": [
        {"account": "philly/ee9e8c", "cluster": "philly", "period": "2017-10", **_BUDGET_AMOUNTS,
         "reason": None,
         "forecast": {"gpu_ms": 980 * _HOUR, "low_gpu_ms": 900 * _HOUR, "high_gpu_ms": 1060 * _HOUR, "band_percent": 80,
                      "overrun": "possible", "history_days": 61, "as_of": _AS_OF, "reason": None},
         "gpu_hours": {"budget": "1000.000", "charged": "760.000"}},
    ],
    "cluster": "philly", "period": "2017-10", "periods": ["2017-09", "2017-10"], **_WINDOW,
    "reading": "as_known", "as_of": _AS_OF,
}  # fmt: skip

CLUSTERS = {
    "clusters": [
        {"cluster": "philly", "rows": 164_494, "last_recorded_at": "2026-12-01T08:00:00.000001Z",
         "rolled_up_from": "2017-08-07T00:00:00Z", "rolled_up_to": "2018-01-01T00:00:00Z",
         "periods": ["2017-10", "2017-11"], "reason": None},
    ],
    "as_of": _AS_OF,
}  # fmt: skip
BOOKS = {
    "books": [
        {"book": "philly", "rows": 164_494,
         "head": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
         "last_recorded_at": "2026-12-01T08:00:00.000001Z"},
    ],
    "dead_letters": 0, "as_of": _AS_OF,
}  # fmt: skip
WORKLOAD = {
    "cluster": "philly", "workload": "8851", "at": _AS_OF, "state": "waits", "account": "philly/ee9e8c",
    "gpus_milli": 8000, "minimum_runtime_s": 3600,
    "events": [
        {"at": "2026-12-01T08:58:10Z", "what": "submitted", "text": "asked for 8 GPUs", "run": None,
         "estimated": False},
    ],
    "superseded": [],
    "cost": {
        "charged_gpu_ms": 0, "unallocated_gpu_ms": 0, "credited_gpu_ms": 0, "not_booked_yet_gpu_ms": 0,
        "charged_gpu_hours": "0.000", "unallocated_gpu_hours": "0.000", "credited_gpu_hours": "0.000",
        "not_booked_yet_gpu_hours": "0.000",
    },
    "decision": None, "ahead": None, "unpaid": None,
    "lines": [
        "8851 on philly, 8 GPUs of philly/ee9e8c: waits at 2026-12-01T09:00:00Z", "",
        "2026-12-01T08:58:10Z  asked for 8 GPUs", "",
        "Cost so far: 0.0 GPU-hours charged, 0.0 GPU-hours unallocated, free.",
    ],
    "as_of": _AS_OF,
}  # fmt: skip
MOVEMENTS = {
    "account": "philly/ee9e8c", "cluster": "philly",
    "movements": [
        {"seq": 8811, "recorded_at": _AS_OF, "type": "workload.ended", "code": "charge", "account": "philly/ee9e8c",
         "period": "2017-10", "effective_on": "2017-10-31", "workload": "8790", "run": "1", "gpu_ms": -8 * _HOUR,
         "gpu_ms_weighted": -8000 * _HOUR, "gpu_hours": "-8.000", "reverses_seq": None, "reason": None},
    ],
    "limits": [
        {"seq": 8790, "recorded_at": _AS_OF, "type": "budget.granted", "account": "philly", "period": "2017-10",
         "gpu_ms": 100 * _HOUR, "gpu_hours": "100.000"},
    ],
    "total_gpu_ms": -8 * _HOUR, "total_gpu_hours": "-8.000", "next": None, "as_of": _AS_OF,
}  # fmt: skip
PERIODS = {
    "periods": [
        {"cluster": "philly", "period": "2017-10", "state": "open", "version": 0, "opened_seq": 12,
         "opened_at": "2026-12-01T08:00:00Z", "installed_gpu_ms": 1_852_560 * _HOUR,
         "granted_gpu_ms": 1_852_560 * _HOUR, "granted_gpu_hours": "1852560.000"},
    ],
    "as_of": _AS_OF,
}  # fmt: skip
CALLER = {
    "name": "slurm of philly", "role": "scheduler", "rights": ["admit", "post-events", "read-orders"],
    "subtree": None, "clusters": ["philly"], "token": "2fcfc046405d",
}  # fmt: skip
TOKENS = {
    "tokens": [
        {"id": "2fcfc046405d", "name": "slurm of philly", "role": "scheduler", "subtree": None, "clusters": ["philly"],
         "created_at": "2026-11-01T08:00:00Z", "created_by": "ada", "expires_at": "2027-11-01T08:00:00Z",
         "replaces": None, "revoked_at": None, "revoked_by": None, "last_used_at": "2026-12-01T08:59:00Z",
         "good": True},
    ],
    "as_of": _AS_OF,
}  # fmt: skip
EVENTS = {"events": 3, "accepted": 2, "repeated": 1}
ADMISSION = {
    "cluster": "philly", "workload": "8851", "attempt": 1, "class": "allocated", "account": "philly/ee9e8c",
    "gpus_milli": 8000, "hold_gpu_ms": 8 * _HOUR, "protected_s": 3600, "expires_at": "2026-12-01T09:15:00Z",
    "reason": "philly/ee9e8c has 29200.000 GPU-hours left.", "seq": 8842, "repeated": False,
}  # fmt: skip
ORDER = {"applied": True, "repeated": False, "seq": 8843, "key": "b7d5e1f0-0d0c-4c5e-9d43-6f3f1a1f2c11"}
_EFFECT = {
    "period": "2026-12",
    "shares": [
        {"cluster": "philly", "account": "philly/ee9e8c", "before_ppm": 120_000, "after_ppm": 150_000,
         "before_gpu_ms": 222_307 * _HOUR, "after_gpu_ms": 277_884 * _HOUR},
    ],
    "budgets": [],
}  # fmt: skip
_PROPOSAL = {
    "proposal": "p-3f9a1c0b2d4e", "cluster": None, "state": "pending", "overdue": False, "by": "Prof. Lin",
    "reason": "The video models need a quarter more until the deadline.",
    "proposed_at": "2026-12-01T08:30:00Z", "effective_at": "2026-12-15T00:00:00Z",
    "decide_by": "2026-12-08T00:00:00Z",
    "shares": [{"account": "philly/ee9e8c", "share": 15}], "grants": [], "transfers": [], "effect": _EFFECT,
    "simulation": None,
    "comments": [{"at": "2026-12-01T08:45:00Z", "by": "Dr. Wang", "text": "From the 15th on this is fine."}],
    "decided": None, "seq": 91,
}  # fmt: skip
PROPOSAL = {**_PROPOSAL, "as_of": _AS_OF}
PROPOSALS = {"proposals": [_PROPOSAL], "next": None, "as_of": _AS_OF}
MADE = {
    "applied": True, "repeated": False, "proposal": "p-3f9a1c0b2d4e", "effect": _EFFECT, "seq": 91,
    "key": "b7d5e1f0-0d0c-4c5e-9d43-6f3f1a1f2c11",
}  # fmt: skip
DIVIDED = {
    "issued": {"a": "40", "b": "30", "c": "20", "d": "10"}, "order": ["a", "b", "c", "d"], "idle": "0",
}  # fmt: skip
HOSTS = {
    "hosts": [
        {"cluster": "philly", "host": "m12", "gpu_model": "P100", "gpus": 8, "usable_gpus": 0, "state": "draining",
         "since": "2026-12-01T08:00:00Z", "reason": "xid-63", "partial_use": False},
    ],
    "next": None, "as_of": _AS_OF,
}  # fmt: skip
DRAINS = {
    "drains": [
        {"cluster": "philly", "host": "m12", "gpus_milli": 8000, "empty_by": "2026-12-01T09:20:00Z",
         "certainty": "bound", "text": "m12 is empty by then: one run is there, and leave one by one.",
         "runs": [{"workload": "8851", "run": "1", "account": "philly/ee9e8c", "gpus_milli": 8000,
                   "protected_until": "2026-12-01T09:18:00Z"}]},
    ],
    "next": None, "as_of": _AS_OF,
}  # fmt: skip
INCIDENTS = {
    "incidents": [
        {"cluster": "philly", "incident": "philly/m12/2026-12-01T08:00:00Z", "host": "m12", "fault": "xid-79",
         "gpu_uuids": None, "noticed_at": "2026-12-01T08:00:00Z",
         "runs": [{"run": "8790/1", "account": "philly/ee9e8c", "state": "credited", "credited_gpu_ms": 4 * _HOUR,
                   "credited_under": "philly/m12/2026-12-01T08:00:00Z", "reason": None, "by": None}],
         "credited_gpu_ms": 4 * _HOUR},
    ],
    "next": None, "as_of": _AS_OF,
}  # fmt: skip
ACCOUNTS = {
    "accounts": [
        {"account": "philly/ee9e8c", "parent": "philly", "is_leaf": True, "created_seq": 4,
         "created_at": "2017-08-07T00:00:00Z", "share": 3, "overdraft": None,
         "shares": [{"from": "2017-10-01T00:00:00Z", "share": 3, "seq": 9}], "overdrafts": []},
    ],
    "next": None, "as_of": _AS_OF,
}  # fmt: skip
_CLOSE = {
    "cluster": "philly", "period": "2017-10", "version": 1, "state": "sealed", "closing_seq": 8900,
    "begun_at": "2026-12-01T08:00:00Z", "closed_seq": 8901, "sealed_seq": 8902, "sealed_at": "2026-12-01T08:00:09Z",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "reopened_seq": None,
}  # fmt: skip
CLOSES = {"closes": [_CLOSE], "next": None, "as_of": _AS_OF}
CLOSE = {
    **_CLOSE, "document": {"format": "gpuledger.close/1", "cluster": "philly", "period": "2017-10", "version": 1},
    "whole": True, "reason": None, "as_of": _AS_OF,
}  # fmt: skip
HEALTH = {"status": "ok", "version": "0.1.0"}
READINESS = {"status": "ready", "revision": "0003"}

EXAMPLES: dict[str, dict[str, Any]] = {
    "listBalances": BALANCES,
    "getBalance": BALANCE,
    "getBalanceTree": BALANCE_TREE,
    "getQueue": QUEUE,
    "listOwed": OWED,
    "getCurrentAllocations": CYCLE,
    "getCurrentDirectives": DIRECTIVES,
    "getWorkload": WORKLOAD,
    "listMovements": MOVEMENTS,
    "listPeriods": PERIODS,
    "listHosts": HOSTS,
    "listDrains": DRAINS,
    "listIncidents": INCIDENTS,
    "listAccounts": ACCOUNTS,
    "listCloses": CLOSES,
    "getClose": CLOSE,
    "getCaller": CALLER,
    "listTokens": TOKENS,
    "postEvents": EVENTS,
    "admit": ADMISSION,
    "grant": ORDER,
    "transfer": ORDER,
    "divide": DIVIDED,
    "listProposals": PROPOSALS,
    "getProposal": PROPOSAL,
    "propose": MADE,
    "comment": ORDER,
    "approve": ORDER,
    "reject": ORDER,
    "withdraw": ORDER,
    "getUsage": USAGE,
    "listLayers": LAYERS,
    "listWaits": WAITS,
    "listWaste": WASTE,
    "getBudgetVersusActual": BUDGET_VERSUS_ACTUAL,
    "listClusters": CLUSTERS,
    "listBooks": BOOKS,
    "getHealth": HEALTH,
    "getReadiness": READINESS,
}
"""Operation -> an example of its answer."""
