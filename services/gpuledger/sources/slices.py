"""MIG slices: how much of a device each is."""

import re

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import shown

_PROFILE = re.compile(r"(?:MIG )?(?:(\d)c\.)?([1-8])g\.\d+gb(?:\+\S+)?")

_WHOLE = 7
_WHOLE_OF = {"A30": 4, "A30X": 4}
"""Models that are cut into other than seven compute slices."""


def slice_milli(profile: str, model: str) -> int:
    """Return the part of a device that a profile such as ``1g.10gb`` is, in milli-GPU, rounded down.

    Slices of one device never sum to more than the device.

    Raises:
        BadRecord: When the profile is none, or has more slices than the device.
    """
    found = _PROFILE.fullmatch(profile)
    whole = next((parts for name, parts in _WHOLE_OF.items() if name in model.split()), _WHOLE)
    slices = int(found[1] or found[2]) if found else 0
    if not 0 < slices <= whole:
        raise BadRecord(
            f"GPU_I_PROFILE: {shown(profile)} is no MIG profile of {shown(model)}",
            code="unknown-profile",
            hint="profiles look like 1g.10gb",
        )
    return GPU_MILLI * slices // whole
