"""Slurm's lists of hosts, such as ``node[01-03,7],login1``, name by name.

An expander of our own: what a file says must neither call a program (as the group syntax of larger tools does)
nor fill the memory with one short line.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.values import name, shown

HOST_LIMIT = 100_000
"""No job has more hosts than this."""

NOWHERE = frozenset(("", "None assigned", "(null)", "None", "N/A", "n/a"))
"""What stands for no hosts."""

_SPLIT = re.compile(r",(?![^\[]*\])")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")  # no host has a number with more digits


@lru_cache(maxsize=4096)
def hosts_of(field: str, listed: str | None) -> tuple[str, ...]:
    """Return the hosts of a list, each once, in its order; none for what stands for no hosts.

    Args:
        field: The name of the field, for messages.
        listed: Names separated by commas; brackets hold numbers and ranges of them, zeros in front are kept.

    Raises:
        BadRecord: When brackets or ranges cannot be read, or there are more hosts than any job has.
    """
    if listed is None or listed.strip() in NOWHERE:
        return ()
    found: dict[str, None] = {}
    for part in _SPLIT.split(listed.strip()):
        for host in _expanded(field, part.strip()):
            found[name(field, host)] = None
            if len(found) > HOST_LIMIT:
                raise BadRecord(f"{field}: more than {HOST_LIMIT} hosts", code="out-of-bounds")
    return tuple(found)


def _expanded(field: str, part: str) -> Iterator[str]:
    bracket = _BRACKET.search(part)
    if bracket is None:
        if "[" in part or "]" in part:
            raise _unreadable(field, part)
        yield part
        return
    before, after = part[: bracket.start()], part[bracket.end() :]
    for piece in bracket[1].split(","):
        for number in _numbers(field, part, piece.strip()):
            yield from _expanded(field, before + number + after)


def _numbers(field: str, part: str, piece: str) -> Iterator[str]:
    ends = _RANGE.fullmatch(piece)
    if ends is None:
        raise _unreadable(field, part)
    first, last = ends[1], ends[2] or ends[1]
    if int(last) < int(first) or int(last) - int(first) >= HOST_LIMIT:
        raise _unreadable(field, part)
    width = len(first) if first.startswith("0") else 0
    return (f"{number:0{width}d}" for number in range(int(first), int(last) + 1))


def _unreadable(field: str, part: str) -> BadRecord:
    return BadRecord(
        f"{field}: {shown(part)} is no list of hosts",
        code="bad-hosts",
        hint=f"lists look like node[01-03,7]; a range has at most {HOST_LIMIT} hosts",
    )
