"""From accounts and the newest cycle to the rows of ``gshare``, in the terms of Slurm's ``sshare``. Pure.

What Slurm calls so follows from shares and use as its manual says (slurm.schedmd.com/sshare.html), with GPU-seconds
for its TRES-seconds. The order itself is gpuledger's: ``FairShare`` and ``LevelFS`` say what the cycle went by.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gpuledger.client.answers import Allocation, UsageRow
from gpuledger.client.records import Account
from gpuledger.kernel.accounts import parent
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.login.columns import Column

PARENT = "parent"
"""The share of a person: an account's people are not compared, which is what Slurm means by it."""

_WHOLE_PPM = 1_000_000
_TOP = ""
"""Stands for what is above the highest accounts that somebody may see."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: an account, or a person in one.

    Args:
        account: The path.
        depth: How many accounts are above it.
        user: Whose use this is; empty for all of the account.
        raw_shares: The share that was set; None where none was, ``parent`` of a person.
        norm_shares: Its part of the shares of its siblings; None where the cycle did not look at it.
        used_gpu_ms: GPU-time that the cycle remembered; of a person what they used in the window that was asked for.
        norm_usage: Its part of all use.
        effective_usage: Its part of the use of its siblings, of a person of the use of the account's people.
        fair_share: Its place in the order: 1 comes first, and the last of n has 1/n. Of leaves alone.
        level: Entitled / used, above 1 for who was served too little; None where it is infinite or means nothing.
        ratio: Used / entitled, by which the cycle orders siblings, the lowest first.
        allocation: What the cycle says besides.
    """

    account: str
    depth: int
    user: str = ""
    raw_shares: int | str | None = None
    norm_shares: Fraction | None = None
    used_gpu_ms: int | None = None
    norm_usage: Fraction | None = None
    effective_usage: Fraction | None = None
    fair_share: Fraction | None = None
    level: Fraction | None = None
    ratio: str | None = None
    allocation: Allocation | None = None

    @property
    def is_unused(self) -> bool:
        """Whether it is entitled to something and used nothing of it."""
        found = self.allocation
        return found is not None and not found.used_gpu_ms and found.entitled_gpu_ms > 0

    def as_json(self) -> dict[str, Any]:
        """Return it as the document has it; ratios as text with six decimals, null is unknown."""
        found = self.allocation
        return {
            "account": self.account,
            "user": self.user or None,
            "raw_shares": self.raw_shares,
            "norm_shares": _ratio(self.norm_shares) or None,
            "used_gpu_ms": self.used_gpu_ms,
            "norm_usage": _ratio(self.norm_usage) or None,
            "effective_usage": _ratio(self.effective_usage) or None,
            "fair_share": _ratio(self.fair_share) or None,
            "level_fs": _level(self) or None,
            "ratio": self.ratio,
            "entitled_gpu_ms": None if found is None else found.entitled_gpu_ms,
            "demand_gpus": None if found is None else found.demand_gpus,
            "issued_gpus": None if found is None else found.issued_gpus,
        }


def of_accounts(accounts: Iterable[Account], allocations: Sequence[Allocation]) -> tuple[Row, ...]:
    """Return a row for each account that the cycle knows, parents before their children.

    Args:
        accounts: The accounts that the caller may see, those of other clusters among them.
        allocations: What the newest cycle says of them.
    """
    by_path = {each.account: each for each in allocations if each.account}  # the root is nobody's row
    below = _by_parent(by_path)
    places = _places(below)
    used_by_parent = {above: sum(each.used_gpu_ms for each in children) for above, children in below.items()}
    every = used_by_parent.get(_TOP, 0)
    shares = {each.account: each.share for each in accounts}
    rows = []
    for path in sorted(by_path, key=lambda path: path.split("/")):
        found = by_path[path]
        used = found.used_gpu_ms
        rows.append(
            Row(
                path,
                path.count("/"),
                raw_shares=shares.get(path),
                norm_shares=Fraction(found.share_ppm, _WHOLE_PPM),
                used_gpu_ms=used,
                norm_usage=_part(used, every),
                effective_usage=_part(used, used_by_parent[_above(path, by_path)]),
                fair_share=places.get(path),
                level=_part(found.entitled_gpu_ms, used),
                ratio=found.ratio,
                allocation=found,
            )
        )
    return tuple(rows)


def with_people(
    rows: Iterable[Row], used: Mapping[str, Sequence[UsageRow]], kept: Sequence[str]
) -> tuple[Row, ...]:
    """Return the rows with one more for each person that used an account, below it.

    Args:
        rows: The accounts.
        used: Account -> who used it in the window, and how much.
        kept: The people to show; all of them where none is named.
    """
    found: list[Row] = []
    for row in rows:
        found.append(row)
        people = used.get(row.account, ())
        total = sum(each.gpu_ms for each in people)
        found.extend(
            Row(
                row.account,
                row.depth,
                user=each.key,
                raw_shares=PARENT,
                used_gpu_ms=each.gpu_ms,
                effective_usage=_part(each.gpu_ms, total),
                fair_share=row.fair_share,
            )
            for each in people
            if not kept or each.key in kept
        )
    return tuple(found)


def _above(path: str, known: Container[str]) -> str:
    """Return whose children an account is compared with: those of its parent, at the top where that is not shown."""
    above = parent(path)
    return above if above is not None and above in known else _TOP


def _by_parent(by_path: Mapping[str, Allocation]) -> dict[str, list[Allocation]]:
    below: dict[str, list[Allocation]] = {}
    for path, each in by_path.items():
        below.setdefault(_above(path, by_path), []).append(each)
    return below


def _places(below: Mapping[str, Sequence[Allocation]]) -> dict[str, Fraction]:
    """Return the place of each leaf in the order in which the cycle goes through the tree."""
    order: list[str] = []
    waiting = sorted(below.get(_TOP, ()), key=_turn, reverse=True)
    while waiting:
        each = waiting.pop()
        children = below.get(each.account)
        if children is None:
            order.append(each.account)
        else:
            waiting.extend(sorted(children, key=_turn, reverse=True))
    return {path: Fraction(len(order) - at, len(order)) for at, path in enumerate(order)}


def _turn(each: Allocation) -> tuple[bool, bool, Decimal, str]:
    """Return where an account comes among its siblings: the lowest ratio first, a share of 0 last."""
    return each.share_ppm == 0, each.ratio is None, Decimal(each.ratio or 0), each.account


def _part(some: int, of: int) -> Fraction | None:
    return Fraction(some, of) if of else None


def _ratio(value: Fraction | None) -> str:
    return "" if value is None else f"{Decimal(value.numerator) / value.denominator:.6f}"


def _level(row: Row) -> str:
    return "inf" if row.is_unused else _ratio(row.level)


def _seconds(gpu_ms: int | None) -> str:
    return "" if gpu_ms is None else str(gpu_ms // GPU_MILLI)


def _of(row: Row, name: str) -> str:
    return "" if row.allocation is None else str(getattr(row.allocation, name))


def _shown(row: Row) -> str:
    return " " * row.depth + row.account.rpartition("/")[2]


def columns(*, for_programs: bool) -> dict[str, Column[Row]]:
    """Return every column by its name.

    Args:
        for_programs: Whether accounts stand as whole paths instead of indented names.
    """
    account = (lambda row: row.account) if for_programs else _shown
    found: list[Column[Row]] = [
        Column("Account", 20, account, is_left=True),
        Column("User", 10, lambda row: row.user),
        Column("RawShares", 10, lambda row: "" if row.raw_shares is None else str(row.raw_shares)),
        Column("NormShares", 11, lambda row: _ratio(row.norm_shares)),
        Column("RawUsage", 11, lambda row: _seconds(row.used_gpu_ms)),
        Column("NormUsage", 11, lambda row: _ratio(row.norm_usage)),
        Column("EffectvUsage", 13, lambda row: _ratio(row.effective_usage)),
        Column("FairShare", 10, lambda row: _ratio(row.fair_share)),
        Column("LevelFS", 10, _level),
        Column("Ratio", 10, lambda row: row.ratio or ""),
        Column(
            "Entitled",
            11,
            lambda row: _seconds(None if row.allocation is None else row.allocation.entitled_gpu_ms),
        ),
        Column("AskedGPUs", 9, lambda row: _of(row, "demand_gpus")),
        Column("IssuedGPUs", 10, lambda row: _of(row, "issued_gpus")),
    ]
    return {column.name: column for column in found}


USUAL = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
"""What is shown unless more is asked for, as sshare shows it."""

LONG = (
    "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,Ratio,Entitled,AskedGPUs,"
    "IssuedGPUs"
)
"""What ``--long`` shows."""

MEANINGS = {
    "Account": "the account; its whole path with -p and -P",
    "User": "the person, in rows of people",
    "RawShares": "the share that was set",
    "NormShares": "its part of the shares of its siblings",
    "RawUsage": "GPU-seconds that are remembered; of people those of the last seven days",
    "NormUsage": "its part of all that is remembered",
    "EffectvUsage": "its part of what its siblings used, of people of what the account's people used",
    "FairShare": "its place in the order of the newest cycle, of accounts that you may see: 1 comes first, 1/n last",
    "LevelFS": "entitled / used: above 1 it was served too little",
    "Ratio": "used / entitled, with holds and caps ahead: siblings are served in this order, the lowest first",
    "Entitled": "GPU-seconds that its part of the shares came to, over what is remembered",
    "AskedGPUs": "GPUs that its funded work runs on or could start on",
    "IssuedGPUs": "GPUs that it should have now",
}
