"""The file that login nodes keep: balances by person, written by a timer and read without asking anybody.

Reading it imports next to nothing: a login waits for it.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "GPULEDGER_LOGIN_FILE"
"""The variable that names the file."""

USUAL = Path("/var/lib/gpuledger/login.json")
"""Where it lies unless the variable says otherwise."""

VERSION = 1

_SHOWN = 3
"""Accounts that a login shows before it counts the rest."""

_OLD_S = 26 * 3600
"""After a day and a little the age is told in days: a timer that stopped must show."""

_GPU_MS_PER_GPU_HOUR = 3_600_000


def file_named(environment: Mapping[str, str]) -> Path:
    """Return the file that the environment names, else the usual one."""
    return Path(environment.get(FILE) or USUAL)


def document(
    balances: Mapping[str, list[dict[str, Any]]], people: Mapping[str, list[str]], written_at: datetime
) -> dict[str, Any]:
    """Return what is written: balances by account, accounts by person.

    Args:
        balances: Account -> its balances, each with ``cluster``, ``period``, ``given_gpu_ms``, ``held_gpu_ms`` and
            ``available_gpu_ms``.
        people: Person -> their accounts.
        written_at: When the ledger was asked.
    """
    return {
        "version": VERSION,
        "written_at": written_at.astimezone(UTC).isoformat(timespec="seconds"),
        "people": {name: sorted(accounts) for name, accounts in sorted(people.items())},
        "accounts": dict(sorted(balances.items())),
    }


def lines_for(person: str, file: Path, now: datetime) -> Iterator[str]:
    """Yield a line for each account of a person, the one with least left first; nothing of who has none.

    Args:
        person: Who logs in.
        file: The kept file.
        now: The present.

    Raises:
        OSError: When there is no such file.
        ValueError: When it is not one of ours.
    """
    found = json.loads(file.read_bytes())
    if found.get("version") != VERSION:
        raise ValueError(f"{file}: version {found.get('version')!r}, not {VERSION}")
    written = datetime.fromisoformat(found["written_at"])
    rows = [
        (row["available_gpu_ms"], account, row)
        for account in found["people"].get(person, ())
        for row in found["accounts"].get(account, ())
    ]
    rows.sort(key=lambda each: each[:2])
    for _, account, row in rows[:_SHOWN]:
        yield _line(account, row)
    if len(rows) > _SHOWN:
        yield f"  and {len(rows) - _SHOWN} more accounts: gbalance"
    if rows:
        yield f"  as of {_age(written, now)}; gbalance shows it as it is now"


def _line(account: str, row: Mapping[str, Any]) -> str:
    left, all_of_it, held = (
        _hours(row[name]) for name in ("available_gpu_ms", "given_gpu_ms", "held_gpu_ms")
    )
    aside = f", {held} more set aside for work that was admitted" if row["held_gpu_ms"] else ""
    return f"{account}: {left} of {all_of_it} GPU-hours left on {row['cluster']} in {row['period']}{aside}"


def _hours(gpu_ms: int) -> str:
    """Return GPU-hours with one decimal, half up, as whole numbers give it."""
    tenths, rest = divmod(abs(gpu_ms) * 10, _GPU_MS_PER_GPU_HOUR)
    tenths += 2 * rest >= _GPU_MS_PER_GPU_HOUR
    sign = "-" if gpu_ms < 0 and tenths else ""
    return f"{sign}{tenths // 10:,}.{tenths % 10}"


def _age(written: datetime, now: datetime) -> str:
    seconds = (now - written).total_seconds()
    said = written.strftime("%Y-%m-%d %H:%M UTC")
    return said if seconds < _OLD_S else f"{said}, {int(seconds // 86400)} days ago"
