"""Old versions of events stay readable for ever: each is lifted, version by version, to the one that the code reads.

A type begins at version 1. When its data changes in a way that old data does not fit, the class changes, and the
step from the version before is added here; the old corpus file stays, a new one is added beside it. What is
journalled says its version from the second on, so that a row never needs to be rewritten (law 1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

Step = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns data of one version into data of the next; it decides by the data alone, and drops nothing that was said."""

STEPS: Mapping[str, Sequence[Step]] = {}
"""Type without prefix and version -> its steps, that from version 1 first. Every type is at version 1 so far."""

VERSION_KEY = "schema_version"
"""In a journalled body, from version 2 on."""


def version_of(name: str) -> int:
    """Return the version of a type that this code reads and writes."""
    return 1 + len(STEPS.get(name, ()))


def lift(name: str, version: int, data: bytes | str) -> bytes | str:
    """Return JSON data of an old version as data of today's.

    Args:
        name: The type without prefix and version, such as ``workload.started``.
        version: The version of the data, from 1 to ``version_of(name)``.
        data: The JSON object.

    Raises:
        msgspec.MsgspecError: When it is no JSON object.
    """
    if name not in STEPS:
        return data
    steps = STEPS[name][version - 1 :]
    if not steps:
        return data
    lifted = msgspec.json.decode(data, type=dict[str, Any])
    for step in steps:
        lifted = step(lifted)
    return msgspec.json.encode(lifted)


def stamp(name: str, body: bytes) -> bytes:
    """Return data of today's version as it is journalled."""
    if name not in STEPS:
        return body
    version = version_of(name)
    return msgspec.json.encode({VERSION_KEY: version, **msgspec.json.decode(body, type=dict[str, Any])})


def lift_journalled(name: str, body: bytes | str) -> bytes | str:
    """Return a journalled body as data of today's version.

    Raises:
        msgspec.MsgspecError: When it is no JSON object, or of a version that this code does not know.
    """
    if name not in STEPS:
        return body
    data = msgspec.json.decode(body, type=dict[str, Any])
    version = data.pop(VERSION_KEY, 1)
    if version not in range(1, version_of(name) + 1):
        raise msgspec.ValidationError(f"{name} of version {version!r} was written by a newer gpuledger")
    return lift(name, version, msgspec.json.encode(data))
