"""What accounts were entitled to: the share in force at each moment, times healthy capacity, integrated.

A share that is cut counts from the cut on, and past use stands beside the entitlement of its time. An account is
entitled from the moment on at which it exists; the time before counts *at par*: use and entitlement alike, at the part
of the capacity that its first share gave it, so that a newcomer is neither behind nor ahead of the others.

An account without children was a leaf: what it was entitled to then is its ``~own`` child's, where its own use counts.
"""

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from gpuledger.kernel.accounts import own_path, owner_of, parent, share_unless_set
from gpuledger.policy.memory import Memory, Step

_ROOT = ""
_PRECISION_BITS = 32
"""Parts of an amount are rounded down to this many binary places before they are summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the tree was like.

    Args:
        shares: Account -> (from when, share), ascending; before the first a share is what it is when nobody set one.
        births: Account -> since when it exists; accounts that are left out exist from the beginning.
    """

    shares: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    births: Mapping[str, int] = field(default_factory=dict)

    def share(self, path: str, at_s: int) -> int:
        """Return the share of an account at an instant, 0 before it exists."""
        if at_s < self.births.get(path, at_s):
            return 0
        steps = self.shares.get(path, ())
        index = bisect_right(steps, at_s, key=lambda step: step.from_s)
        return steps[index - 1].amount if index else share_unless_set(path)

    def exists(self, path: str, at_s: int) -> bool:
        """Say whether an account exists at an instant."""
        return self.births.get(path, at_s) <= at_s

    def moments(self, start_s: int, end_s: int) -> list[int]:
        """Return when anything changes within ``(start_s, end_s)``, ascending."""
        changes = {step.from_s for steps in self.shares.values() for step in steps} | {*self.births.values()}
        return sorted(at_s for at_s in changes if start_s < at_s < end_s)


class Entitled(NamedTuple):
    """What a leaf was entitled to.

    Args:
        gpu_ms: Share in force x capacity, since it exists.
        par_gpu_ms: What counts as both used and entitled, for the time before it existed.
    """

    gpu_ms: int
    par_gpu_ms: int


def entitled(
    paths: Collection[str],
    history: History,
    memory: Memory,
    capacity: Sequence[Step],
    *,
    per_unit: int = 1,
) -> dict[str, Entitled]:
    """Return what each leaf was entitled to over the memory.

    Args:
        paths: Every account of the tree as it is now, the inner ones and ``~own`` children included.
        history: How shares and accounts came to be.
        memory: What is remembered.
        capacity: Healthy milli-GPU over time, so many parts of each.
        per_unit: How many parts.
    """
    children = _children(paths)
    leaves = [path for path in paths if path not in children]
    units = dict.fromkeys(leaves, 0)
    par = dict.fromkeys(leaves, 0)
    before = 0
    born: set[str] = {leaf for leaf in leaves if history.exists(leaf, memory.start_s)}
    edges = [memory.start_s, *history.moments(memory.start_s, memory.end_s), memory.end_s]
    for from_s, to_s in itertools.pairwise(edges):
        parts = _parts(children, history, from_s)
        weight = memory.of_steps(capacity, from_s, to_s)
        for leaf, part in parts.items():
            if leaf not in units:
                continue
            units[leaf] += _portion(weight, part)
            if leaf not in born:
                par[leaf] = _portion(before, part)
        born |= {leaf for leaf in leaves if history.exists(leaf, from_s)}
        before += weight
    for leaf in set(leaves) - born:  # the newest change: it exists from now on
        par[leaf] = _portion(before, _parts(children, history, memory.end_s).get(leaf, Fraction(0)))
    return {
        leaf: Entitled(_whole(memory, units[leaf], per_unit), _whole(memory, par[leaf], per_unit))
        for leaf in leaves
    }


def parts(paths: Collection[str], history: History, at_s: int) -> dict[str, Fraction]:
    """Return the part of the cluster that is each leaf's at an instant.

    Args:
        paths: Every account of the tree, the inner ones and ``~own`` children included.
        history: How shares and accounts came to be.
        at_s: The instant.
    """
    children = _children(paths)
    found = _parts(children, history, at_s)
    return {path: found.get(path, Fraction(0)) for path in paths if path not in children}


def entitled_to(part: Fraction, weight: int, memory: Memory, *, per_unit: int = 1) -> int:
    """Return what a leaf is entitled to whose part never changed, as ``entitled`` does.

    Args:
        part: Its part of the cluster.
        weight: What healthy capacity over the memory weighs, in units, so many parts of each.
        memory: What is remembered.
        per_unit: How many parts.
    """
    return _whole(memory, _portion(weight, part), per_unit)


def _children(paths: Iterable[str]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for path in sorted(paths):
        children.setdefault(parent(path) or _ROOT, []).append(path)
    return children


def _parts(children: Mapping[str, Sequence[str]], history: History, at_s: int) -> dict[str, Fraction]:
    """Return the part of the cluster that was each leaf's at an instant; leaves without any are left out."""
    found: dict[str, Fraction] = {}
    pending = [(_ROOT, Fraction(1))]
    while pending:
        path, part = pending.pop()
        below = children.get(path, ())
        if not below:
            found[path] = part
            continue
        shares = [history.share(child, at_s) for child in below]
        whole = sum(shares)
        if not whole and not any(history.exists(child, at_s) for child in below if owner_of(child) == child):
            found[own_path(path)] = part  # it had no children then
            continue
        pending += [
            (child, part * Fraction(share, whole))
            for child, share in zip(below, shares, strict=True)
            if share
        ]
    return found


def _portion(units: int, part: Fraction) -> int:
    return (units << _PRECISION_BITS) * part.numerator // part.denominator


def _whole(memory: Memory, precise: int, per_unit: int) -> int:
    half = 1 << (_PRECISION_BITS - 1)
    return memory.rounded((precise + half) >> _PRECISION_BITS, per_unit=per_unit)
