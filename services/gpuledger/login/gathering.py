"""Asks the ledger for what login nodes and portals show, and writes it, each file whole or not at all."""

import csv
import datetime as dt
import json
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from gpuledger.kernel.accounts import owner_of
from gpuledger.kernel.errors import Refused
from gpuledger.login import balances as rows_of
from gpuledger.login import kept, portal

if TYPE_CHECKING:
    from gpuledger.client import LedgerClient

Names = Callable[[Collection[str]], Mapping[str, str]]
"""Tells token -> name."""

LOGIN_FILE = "login.json"
_HEADER = ["person", "account"]


def write_files(
    client: "LedgerClient", folder: Path, names: Names, *, days: int, members: Path | None, now: dt.datetime
) -> list[Path]:
    """Write the file of login lines, and one of balances for the portal of each cluster; return their paths.

    Args:
        client: Asks as somebody who may read every account and who used it.
        folder: Where they are written; it must be there.
        names: Tells the names of people from the tokens that stand for them in the books; who was erased is absent.
        days: Who used an account within so many days is told its balance.
        members: A CSV file of more people, with the columns ``person`` and ``account``.
        now: The present.

    Raises:
        Refused: When the file of people is not valid, or a file cannot be written.
        GpuledgerError: What the ledger refused the questions with.
    """
    balances = rows_of.newest(client.balances().balances, None)
    by_account: dict[str, list[dict[str, Any]]] = {}
    for each in balances:
        by_account.setdefault(each.account, []).append(
            {
                "cluster": each.cluster,
                "period": each.period,
                "given_gpu_ms": rows_of.given(each),
                "held_gpu_ms": each.held_gpu_ms,
                "available_gpu_ms": each.available_gpu_ms,
            }
        )
    people = _people(client, by_account, names, now - dt.timedelta(days=days), now)
    if members is not None:
        for person, account in read_members(members):
            people.setdefault(person, set()).add(account)
    whose = {person: sorted(accounts) for person, accounts in people.items()}
    written = [_write(folder / LOGIN_FILE, kept.document(by_account, whose, now))]
    for cluster in sorted({each.cluster for each in balances}):
        there = {
            account: found
            for account, rows in by_account.items()
            if (found := [row for row in rows if row["cluster"] == cluster])
        }
        written.append(_write(folder / f"ondemand-{cluster}.json", portal.document(there, whose, now)))
    return written


def read_members(file: Path) -> list[tuple[str, str]]:
    """Return the people of a CSV file with the columns ``person`` and ``account``.

    Raises:
        Refused: When it cannot be read, or a line of it is not valid.
    """
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.reader(opened))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{file}: cannot be read: {error}", hint="a CSV file: person,account") from error
    if not rows or [name.strip().lower() for name in rows[0]] != _HEADER:
        raise Refused(f"{file}:1: the first line must be person,account", hint="name the two columns")
    found = []
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        cells = [cell.strip() for cell in row]
        if len(cells) != len(_HEADER) or not all(cells):
            raise Refused(f"{file}:{number}: {','.join(row)!r} is not a person and an account")
        found.append((cells[0], cells[1]))
    return found


def _people(
    client: "LedgerClient", accounts: Mapping[str, object], names: Names, since: dt.datetime, now: dt.datetime
) -> dict[str, set[str]]:
    users = {
        account: [
            row.key for row in client.usage("user", account=owner_of(account), from_=since, to=now).rows
        ]
        for account in accounts
    }
    known = names({token for tokens in users.values() for token in tokens})
    found: dict[str, set[str]] = {}
    for account, tokens in users.items():
        for name in filter(None, map(known.get, tokens)):
            found.setdefault(name, set()).add(account)
    return found


def _write(path: Path, document: Mapping[str, Any]) -> Path:
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as draft:
            try:
                json.dump(document, draft, ensure_ascii=False)
                draft.flush()
                os.fsync(draft.fileno())
                os.fchmod(draft.fileno(), 0o644)  # everybody who logs in reads it
                Path(draft.name).replace(path)
            except BaseException:
                Path(draft.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise Refused(
            f"{path}: cannot be written: {error.strerror or error}",
            hint="name a folder that you may write to",
        ) from error
    return path
