"""MIG slices: how much of a device each is; the one table of profiles, for every source.

A slice is its compute slices over those of the whole device, as NVIDIA's user guide of MIG lists them for each model.
Slices of one device are apportioned by index: each gets what they are up to and with it, rounded down, less what they
are before it. Sevenths are 142 and six times 143; whatever the layout, slices of a device never sum to more than it.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI

_PARTS = re.compile(
    r"(?:MIG )?(?:([1-9])c\.)?(([1-9][0-9]*)g\.[1-9][0-9]*gb)(?:[.+-](?:me|gfx|all))*", re.IGNORECASE
)

SEVENTHS, QUARTERS = 7, 4

_SEVENTHS = (
    "1g.5gb 1g.10gb 1g.12gb 1g.18gb 1g.20gb 1g.23gb 1g.34gb 1g.35gb 1g.36gb 1g.45gb "
    "2g.10gb 2g.20gb 2g.24gb 2g.35gb 2g.36gb 2g.45gb 2g.67gb 2g.70gb "
    "3g.20gb 3g.40gb 3g.47gb 3g.48gb 3g.71gb 3g.72gb 3g.90gb 3g.135gb 3g.139gb "
    "4g.20gb 4g.40gb 4g.47gb 4g.48gb 4g.71gb 4g.72gb 4g.90gb 4g.135gb 4g.139gb "
    "7g.40gb 7g.80gb 7g.94gb 7g.96gb 7g.141gb 7g.144gb 7g.180gb 7g.269gb 7g.278gb"
)
_QUARTERS = "1g.6gb 2g.12gb 4g.24gb 2g.48gb 4g.96gb"

_WHOLES = {
    **dict.fromkeys(_SEVENTHS.split(), SEVENTHS),
    **dict.fromkeys(_QUARTERS.split(), QUARTERS),
}
"""Profile -> compute slices of the whole device that it is cut from. What is not listed is not guessed."""

_WHOLES_BY_MODEL = {"1g.24gb": {"rtx pro 6000": QUARTERS, "gh200": SEVENTHS, "h100": SEVENTHS}}
"""Profiles that are different parts of different models, by words of the model's name."""

PROFILES = tuple(sorted({*_WHOLES, *_WHOLES_BY_MODEL}))
"""Every profile of the table."""

_WORDS = re.compile(r"[^0-9a-z]+")


class Part(NamedTuple):
    """So many compute slices, of so many of the whole device."""

    slices: int
    whole: int

    def milli(self, count: int = 1) -> int:
        """Return what so many slices of one run are, in milli-GPU, rounded down together."""
        return GPU_MILLI * self.slices * count // self.whole


def part_of(profile: str, model: str = "") -> Part | None:
    """Return the part of a device that a profile is; None when the table does not say.

    Args:
        profile: Such as ``1g.10gb``, ``MIG 3g.40gb+me`` or ``1c.3g.40gb``.
        model: The device's, as far as it is known: ``1g.24gb`` is a seventh of one and a quarter of another.
    """
    found = _PARTS.fullmatch(profile)
    if found is None:
        return None
    name = found[2].lower()
    whole = _WHOLES.get(name)
    if whole is None:
        words = f" {_WORDS.sub(' ', model.lower())} "
        of_model = _WHOLES_BY_MODEL.get(name, {}).items()
        whole = next((parts for known, parts in of_model if f" {known} " in words), None)
    slices = int(found[1] or found[3])
    return None if whole is None or slices > int(found[3]) else Part(slices, whole)


def apportioned(parts: Sequence[Part]) -> list[int]:
    """Return what each slice of one device is, in milli-GPU, in the order of their indices.

    Raises:
        ValueError: When they are more than the device, or not of one device.
    """
    wholes = {part.whole for part in parts}
    if len(wholes) > 1 or any(sum(part.slices for part in parts) > whole for whole in wholes):
        raise ValueError(f"{parts} are no slices of one device")
    upto = accumulate((part.slices for part in parts), initial=0)
    edges = [Part(slices, parts[0].whole).milli() for slices in upto] if parts else []
    return [end - start for start, end in pairwise(edges)]
