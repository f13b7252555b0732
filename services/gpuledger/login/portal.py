"""Open OnDemand's file of balances: what portals show beside the name of a project.

The form is that which Open OnDemand reads at ``OOD_BALANCE_PATH``: ``version``, ``timestamp``, ``config`` with ``unit``
and ``project_type``, and ``balances`` of ``user``, ``project`` and ``value``; it warns where a value is below
``OOD_BALANCE_THRESHOLD``. Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gpuledger.kernel.amounts import gpu_hours

VERSION = 1


def document(
    balances: Mapping[str, list[dict[str, Any]]], people: Mapping[str, list[str]], written_at: datetime
) -> dict[str, Any]:
    """Return the document: GPU-hours left, one row for each person and account, of one cluster.

    Args:
        balances: Account -> its balances, each with ``available_gpu_ms``.
        people: Person -> their accounts.
        written_at: When the ledger was asked.
    """
    rows = [
        {"user": person, "project": account, "value": float(gpu_hours(row["available_gpu_ms"]))}
        for person, accounts in sorted(people.items())
        for account in sorted(accounts)
        for row in balances.get(account, ())
    ]
    return {
        "version": VERSION,
        "timestamp": int(written_at.timestamp()),
        "config": {"unit": "GPU-hours", "project_type": "account"},
        "balances": rows,
    }
