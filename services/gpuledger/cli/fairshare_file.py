"""The file of ``gpuledger fairshare``: a tree with its supply, written by hand. Read strictly."""

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt

from gpuledger.ingest.yaml_file import Strict, read_yaml
from gpuledger.kernel.accounts import check_path, lineage
from gpuledger.kernel.amounts import GPU_MILLI, from_gpu_hours
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import Refused
from gpuledger.policy.state import PER_MILLE, AccountState

DOCS = "docs/fairness.md"

PARENT: Literal["parent"] = "parent"
"""Slurm's share of an account that is as if its children were its parent's."""

Gpus = Annotated[Decimal, Field(ge=0, max_digits=12, decimal_places=3)]
"""GPUs, to the milli-GPU."""

Number = Annotated[Decimal, Field(ge=0, max_digits=15, decimal_places=6)]


class Account(Strict):
    """A node of the tree.

    Args:
        share: Weight among the siblings; here, unlike in a budget, it may have decimals. In the mode ``fair-tree`` it
            may be ``parent``, which weighs nothing in the division.
        demand: GPUs of funded work that runs or could start.
        limit: The most GPUs that the node, with everything below it, is issued.
        used_gpu_hours: What it used of the window.
        created: When it came to be: seconds since 1970, a day, or a time (UTC unless it says otherwise).
    """

    share: Number | Literal["parent"] = Decimal(1)
    demand: Gpus = Decimal(0)
    limit: Gpus | None = None
    used_gpu_hours: Number = Decimal(0)
    created: NonNegativeInt | dt.datetime | dt.date | None = None


class Credits(Strict):
    """How the mode ``credits`` divides.

    Args:
        shared: alpha, the part of the supply that siblings share as a pool; the rest is guaranteed to them.
        start: Credits of everybody before the first quantum.
    """

    shared: Annotated[Decimal, Field(ge=0, le=1, decimal_places=3)] = Decimal("0.5")
    start: Number = Decimal(0)


class FairShareFile(Strict):
    """The whole file.

    Args:
        supply: GPUs there are to divide.
        window_gpu_hours: Capacity of the look-back window in GPU-hours.
        mode: How leaves are ordered: by use of the window, or as Slurm's Fair Tree does; or how they are divided:
            quantum by quantum, by credits.
        accounts: The tree by path; inner nodes that are not listed have share 1.
        credits: What the mode ``credits`` goes by.
        quanta: With the mode ``credits``, the demand in each quantum, account -> GPUs; what accounts ask for otherwise
            is one quantum.
    """

    supply: Gpus
    mode: Literal["window", "fair-tree", "credits"] = "window"
    window_gpu_hours: Number | None = None
    accounts: dict[str, Account]
    credits: Credits | None = None
    quanta: Annotated[list[dict[str, Gpus]], Field(min_length=1)] | None = None


@dataclass(frozen=True, slots=True)
class Quanta:
    """Quanta that are divided by credits.

    Args:
        demands_milli: For each quantum, account -> milli-GPU.
        start: Credits of everybody before the first, in GPUs.
        shared_permille: The part of the supply that is a pool.
    """

    demands_milli: tuple[dict[str, int], ...]
    start: Fraction
    shared_permille: int


@dataclass(frozen=True, slots=True)
class Question:
    """What the file asks, in the policy's units.

    Args:
        accounts: For ``policy.calculator.divide_by_hand``, as the next two.
        supply_milli: Milli-GPU.
        window_gpu_ms: Capacity of the window, if given.
        fair_tree: Whether leaves are ordered by ``policy.fair_tree``.
        transparent: The accounts whose share is ``parent``.
        quanta: What is divided by credits, if anything is.
    """

    accounts: tuple[AccountState, ...]
    supply_milli: int
    window_gpu_ms: int | None = None
    fair_tree: bool = False
    transparent: frozenset[str] = frozenset()
    quanta: Quanta | None = None


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
        transparent = _transparent(file)
        return Question(
            accounts=_accounts(file),
            supply_milli=_milli(file.supply),
            window_gpu_ms=None
            if file.window_gpu_hours is None
            else _gpu_ms(file.window_gpu_hours, "window_gpu_hours"),
            fair_tree=file.mode == "fair-tree",
            transparent=transparent,
            quanta=_quanta(file),
        )
    except Refused as error:
        raise Refused(f"{path}: {error.message}", hint=error.hint) from error


def _quanta(file: FairShareFile) -> Quanta | None:
    if file.mode != "credits":
        if extra := [name for name in ("credits", "quanta") if getattr(file, name) is not None]:
            raise Refused(
                f"{extra[0]}: belongs to division by credits", hint="write mode: credits, or leave it out"
            )
        return None
    quanta = file.quanta or [{path: account.demand for path, account in file.accounts.items()}]
    if unknown := sorted({path for quantum in quanta for path in quantum} - file.accounts.keys()):
        raise Refused(f"quanta: {unknown[0]} is no account", hint="list it under accounts, with its share")
    by = file.credits or Credits()
    return Quanta(
        demands_milli=tuple({path: _milli(gpus) for path, gpus in quantum.items()} for quantum in quanta),
        start=Fraction(by.start),
        shared_permille=int(by.shared * PER_MILLE),
    )


def _transparent(file: FairShareFile) -> frozenset[str]:
    accounts = frozenset(path for path, account in file.accounts.items() if account.share == PARENT)
    if accounts and file.mode != "fair-tree":
        raise Refused(
            f"accounts.{min(accounts)}.share: {PARENT} is a share of Slurm's Fair Tree",
            hint="write a number, or mode: fair-tree",
        )
    return accounts


def _accounts(file: FairShareFile) -> tuple[AccountState, ...]:
    """Return every node; shares with decimals are brought to whole numbers, all by one factor."""
    nodes = {node: Account() for path in file.accounts for node in lineage(path)} | file.accounts
    shares = {
        path: Decimal(0) if account.share == PARENT else account.share for path, account in nodes.items()
    }
    factor = math.lcm(*(Fraction(share).denominator for share in shares.values()))
    return tuple(
        AccountState(
            account=path,
            share=int(shares[path] * factor),
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
