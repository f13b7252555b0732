"""The file of ``gpuledger fairshare``: a tree with its supply, written by hand. Read strictly."""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt

from gpuledger.ingest.yaml_file import Strict, read_yaml
from gpuledger.kernel.accounts import check_path, lineage
from gpuledger.kernel.amounts import GPU_MILLI, from_gpu_hours
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused
from gpuledger.policy.state import AccountState

DOCS = "docs/fairness.md"

Gpus = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=3)]
"""GPUs, to the milli-GPU."""

Number = Annotated[Decimal, Field(ge=0, max_digits=15, decimal_places=6)]


class Account(Strict):
    """A node of the tree.

    Args:
        share: Weight among the siblings; here, unlike in a budget, it may have decimals.
        demand: GPUs of funded work that runs or could start.
        limit: The most GPUs that the node, with everything below it, is issued.
        used_gpu_hours: What it used of the window.
        created: When it came to be: seconds since 1970, a day, or a time (UTC unless it says otherwise).
    """

    share: Number = Decimal(1)
    demand: Gpus = Decimal(0)
    limit: Gpus | None = None
    used_gpu_hours: Number = Decimal(0)
    created: NonNegativeInt | dt.datetime | dt.date | None = None


class FairShareFile(Strict):
    """The whole file.

    Args:
        supply: GPUs there are to divide.
        window_gpu_hours: Capacity of the look-back window in GPU-hours.
        accounts: The tree by path; inner nodes that are not listed have share 1.
    """

    supply: Gpus
    window_gpu_hours: Number | None = None
    accounts: dict[str, Account]


@dataclass(frozen=True, slots=True)
class Question:
    """What the file asks, in the policy's units: see ``policy.calculator.divide_by_hand``."""

    accounts: tuple[AccountState, ...]
    supply_milli: int
    window_gpu_ms: int | None


def read(path: Path) -> Question:
    """Read a tree that somebody wrote.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    file = read_yaml(path, FairShareFile, DOCS)
    try:
        for account in file.accounts:
            check_path(account)
        return Question(
            accounts=_accounts(file),
            supply_milli=_milli(file.supply),
            window_gpu_ms=None
            if file.window_gpu_hours is None
            else _gpu_ms(file.window_gpu_hours, "window_gpu_hours"),
        )
    except Refused as error:
        raise Refused(f"{path}: {error.message}", hint=error.hint) from error


def _accounts(file: FairShareFile) -> tuple[AccountState, ...]:
    """Return every node; shares with decimals are brought to whole numbers, all by one factor."""
    nodes = {node: Account() for path in file.accounts for node in lineage(path)} | file.accounts
    factor = math.lcm(*(Fraction(account.share).denominator for account in nodes.values()))
    return tuple(
        AccountState(
            account=path,
            share=int(account.share * factor),
            demand_milli=_milli(account.demand),
            limit_milli=None if account.limit is None else _milli(account.limit),
            used_gpu_ms=_gpu_ms(account.used_gpu_hours, f"accounts.{path}.used_gpu_hours"),
            created_s=_created_s(account.created),
        )
        for path, account in nodes.items()
    )


def _milli(gpus: Decimal) -> int:
    return int(gpus * GPU_MILLI)


def _gpu_ms(hours: Decimal, place: str) -> int:
    try:
        return from_gpu_hours(hours)
    except ValueError as error:
        raise Refused(f"{place}: {error}", hint="write at most five decimals") from error


def _created_s(created: int | dt.datetime | dt.date | None) -> int | None:
    if created is None or isinstance(created, int):
        return created
    if not isinstance(created, dt.datetime):
        created = dt.datetime.combine(created, dt.time())
    return seconds(created if created.tzinfo else created.replace(tzinfo=dt.UTC))
