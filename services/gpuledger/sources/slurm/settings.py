"""Settings of a Slurm cluster, as ``sacctmgr`` lists them -> a refusal that says what they say.

Shares are told as a budget file writes them: jobs are booked to their account, directly below the cluster, so the
share of an account there is its part of the whole tree.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from pathlib import Path

from gpuledger.kernel.accounts import escape_part, join
from gpuledger.kernel.apportion import apportion
from gpuledger.kernel.errors import Refused
from gpuledger.sources.files import path_text

_SHOWN = 20
_WHOLE_PPM = 1_000_000
_ROOT = "root"
_DEPTH = 100
"""No tree of accounts is deeper; what stands below is told as if it were a leaf."""

_NOT_HERE = "settings are not imported: who may use how much is decided in the ledger"

Rows = Sequence[Mapping[str, str]]


def refusal(path: Path, columns: Sequence[str], rows: Rows) -> Refused:
    """Return the refusal of a listing of settings.

    Args:
        path: The file.
        columns: Its columns.
        rows: Its rows by column.
    """
    named = set(columns)
    place = path_text(path)
    if {"Account", "ParentName"} <= named and (
        share := next((c for c in ("Share", "Fairshare") if c in named), "")
    ):
        told = _budget(rows, share)
        count = len({said["Account"] for said in rows if not said.get("User")})
        return Refused(
            f"{place}: holds {count} accounts and their shares; {_NOT_HERE}",
            hint=f"write them to a budget file, and run gpuledger budget apply: {told}",
        )
    if {"Name", "GrpTRES"} <= named:
        limits = ", ".join(_limits(rows)[:_SHOWN]) or "none of GPUs"
        return Refused(
            f"{place}: holds {len(rows)} QOS with limits ({limits}); {_NOT_HERE}",
            hint="limits stay with the scheduler; give accounts budgets with gpuledger budget apply",
        )
    if "User" in named or "Account" in named:
        return Refused(
            f"{place}: holds users and their accounts; {_NOT_HERE}",
            hint="accounts come with their jobs; map them with gpuledger mapping apply",
        )
    return Refused(
        f"{place}: is no listing of sacctmgr that holds records",
        hint="import the events of hosts: sacctmgr --parsable2 show event; nothing was imported",
    )


def _budget(rows: Rows, share: str) -> str:
    """Return the accounts without accounts below them as a budget file writes them."""
    shares: dict[str, list[tuple[str, Fraction]]] = {}
    for cluster, tree in _trees(rows, share).items():
        shares[cluster] = list(_parts(tree, _ROOT, Fraction(1)))
    written = []
    for cluster, parts in shares.items():
        whole = lcm(*(part.denominator for _, part in parts))
        ppm = apportion(_WHOLE_PPM, [int(part * whole) for _, part in parts])
        written += [
            f"{join(escape_part(cluster), escape_part(account))}: {{share: {number}}}"
            for (account, _), number in zip(parts, ppm, strict=True)
        ]
    more = f", and {len(written) - _SHOWN} more" if len(written) > _SHOWN else ""
    return f"accounts: {{{', '.join(written[:_SHOWN])}{more}}}"


def _trees(rows: Rows, share: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return cluster -> parent -> account -> its share; what inherits its share or has none counts 1."""
    trees: dict[str, dict[str, dict[str, int]]] = {}
    for said in rows:
        if not said.get("User") and said["ParentName"] and said["Account"]:
            below = trees.setdefault(said.get("Cluster") or "slurm", {}).setdefault(said["ParentName"], {})
            below[said["Account"]] = (
                int(said[share]) if said[share].isdecimal() and said[share].isascii() else 1
            )
    return trees


def _parts(
    tree: Mapping[str, Mapping[str, int]], account: str, part: Fraction, above: Sequence[str] = ()
) -> Sequence[tuple[str, Fraction]]:
    """Return every account without others below it, with its part of the whole."""
    lineage = (*above, account)
    below = {child: share for child, share in tree.get(account, {}).items() if child not in lineage}
    if not below or len(lineage) > _DEPTH:
        return [(account, part)]
    whole = sum(below.values())
    return [
        found
        for child, share in below.items()
        for found in _parts(tree, child, part * Fraction(share, whole) if whole else Fraction(0), lineage)
    ]


def _limits(rows: Rows) -> list[str]:
    """Return every limit of GPUs, such as ``big: GrpTRES gres/gpu=8192``."""
    return [
        f"{said['Name']}: {column} {item}"
        for said in rows
        for column, value in said.items()
        if "TRES" in column
        for item in value.split(",")
        if item.startswith("gres/gpu")
    ]
