"""Kubernetes objects as enforcers see them: which are ours, and patches that test before they change. Pure."""

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuledger.enforce.names import Named, Reading, resolve
from gpuledger.enforce.plan import Patch
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes import quantities

Object = Mapping[str, Any]

LABEL = "gpuledger/enforce"
"""With the value ``true`` it says that an object may be changed."""

ACCOUNT = "gpuledger/account"
"""The annotation that says which account an object stands for: paths do not fit into a label."""

LEFT = "gpuledger/left"
"""The annotation of work that was told to leave: the cycle that said so."""

_STEP = re.compile(r"(\d+)(h|ms|m|s)")
_SECOND_MS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def managed(objects: Iterable[Object], globs: Sequence[str]) -> list[Object]:
    """Return the objects that carry our label, or whose name the configuration lists."""
    return [
        one
        for one in objects
        if labels(one).get(LABEL) == "true" or any(fnmatch.fnmatchcase(name(one), glob) for glob in globs)
    ]


def accounts(
    objects: Sequence[Object], known: Iterable[str], given: Mapping[str, str], reading: Reading | None
) -> Named:
    """Say which account each object stands for: by the configuration, its annotation, or the mapping if there is one.

    Args:
        objects: Objects of one kind that may be changed.
        known: The accounts that the cycle issued to.
        given: Name -> path, from the configuration.
        reading: The mapping, for objects whose name it reads.
    """
    marked = {name(one): path for one in objects if (path := annotations(one).get(ACCOUNT))}
    return resolve(map(name, objects), known, reading, given={**marked, **given}, managed=("*",))


def name(one: Object) -> str:
    """Return the name of an object."""
    return str(one["metadata"]["name"])


def labels(one: Object) -> Mapping[str, str]:
    """Return its labels."""
    return one["metadata"].get("labels") or {}


def annotations(one: Object) -> Mapping[str, str]:
    """Return its annotations."""
    return one["metadata"].get("annotations") or {}


def field_of(one: Object, *path: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a field of an object, or None where any part of the way is missing."""
    found: Any = one
    for part in path:
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def patch(one: Object, kind: str, *operations: Mapping[str, Any]) -> Patch:
    """Return a patch that does nothing when the object is not the one that was looked at."""
    uid = {"op": "test", "path": "/metadata/uid", "value": one["metadata"]["uid"]}
    return Patch(kind, one["metadata"].get("namespace", ""), name(one), (uid, *operations))


def setting(one: Object, path: Sequence[str], value: Any) -> list[Mapping[str, Any]]:  # noqa: ANN401
    """Return the operations that set a field, and make what lies on the way to it."""
    missing = [path[:depth] for depth in range(1, len(path)) if field_of(one, *path[:depth]) is None]
    return [
        *({"op": "add", "path": pointer(*way), "value": {}} for way in missing),
        {"op": "add", "path": pointer(*path), "value": value},
    ]


def pointer(*path: str | int) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def quantity_milli(value: Any) -> int | None:  # noqa: ANN401 - what the API printed
    """Return a quantity in thousandths; None for what is none that we would write."""
    if value is None:
        return None
    try:
        return quantities.milli("quantity", str(value))
    except BadRecord:
        return None


def quantity(amount_milli: int) -> str:
    """Return thousandths as a quantity: ``30``, or ``1500m``."""
    return f"{amount_milli}m" if amount_milli % GPU_MILLI else str(amount_milli // GPU_MILLI)


def same_quantity(now: Any, wanted: str) -> str | None:  # noqa: ANN401
    """Return what a quantity is; as it is wanted when it only is written in another way."""
    if now is None:
        return None
    return wanted if quantity_milli(now) == quantity_milli(wanted) else str(now)


def same_duration(now: Any, wanted: str) -> str | None:  # noqa: ANN401
    """Return what a duration is; as it is wanted when it only is written in another way."""
    if now is None:
        return None
    return wanted if _duration_ms(str(now)) == _duration_ms(wanted) else str(now)


def _duration_ms(text: str) -> int | None:
    steps = _STEP.findall(text)
    if "".join(number + unit for number, unit in steps) != text:
        return None
    return sum(int(number) * _SECOND_MS[unit] for number, unit in steps)
