"""Ways in which records go wrong on their way: bytes flipped, fields lost, doubled, moved, or filled with nonsense."""

import random
import re
from collections.abc import Sequence

NONSENSE = (
    b"", b"0", b"-1", b"-0", b"1e308", b"NaN", b"null", b"true", b"[]", b"{}", b'""', b'"', b",", b";", b"\t",
    b"9223372036854775807", b"18446744073709551616", b"-9223372036854775808", b"4294967294", b"0.1", b"1e-400",
    b"2147483648", b"4102444800", b"1970-01-01T00:00:00Z", b"9999-12-31T23:59:59Z", b"2017-02-30 00:00:00",
    b"None", b"Unknown", b"N/A", b"\x00", b"\\u0000", b"\xff\xfe", b"\xc3\x28", b"\xe2\x80\xa8", b"'", b"%00",
    b"../../x", b"~org", b"A" * 300, "Ünïcode".encode(), b"\xf0\x9f\x9a\x80", b"gres/gpu=-8", b"(null)", b"<a/>",
)  # fmt: skip
"""Values that readers have stumbled over."""

_PARTS = re.compile(rb"[0-9]+(?:\.[0-9]+)?|[A-Za-z_]+|\"[^\"]*\"")
_CUT = re.compile(rb"[,\s|;:]")


def mutated(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return the record with one to three things wrong with it; now and then it is left as it is."""
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        record = chance.choice(_WAYS)(record, others, chance)
    return record


def _flip(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    if not record:
        return b"\x7f"
    at = chance.randrange(len(record))
    return record[:at] + bytes((record[at] ^ 1 << chance.randrange(8),)) + record[at + 1 :]


def _cut_out(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randint(0, len(record))
    return record[:at] + record[at + chance.randint(1, 20) :]


def _end_early(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    return record[: chance.randint(0, len(record))]


def _double(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randint(0, len(record))
    span = record[at : at + chance.randint(1, 40)]
    return record[:at] + span + record[at:]


def _put_in(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randint(0, len(record))
    return record[:at] + chance.choice(NONSENSE) + record[at:]


def _replace(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Put another value in the place of a number, a word or a string: most records stay well formed."""
    parts = list(_PARTS.finditer(record))
    if not parts:
        return record
    part = chance.choice(parts)
    value = chance.choice(NONSENSE)
    if part[0].startswith(b'"') and chance.random() < 0.7:
        value = b'"' + value.replace(b'"', b"") + b'"'
    return record[: part.start()] + value + record[part.end() :]


def _count(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Change a number to one near it, or far away."""
    numbers = [part for part in _PARTS.finditer(record) if part[0].isdigit()]
    if not numbers:
        return record
    part = chance.choice(numbers)
    value = int(part[0]) + chance.choice((-1, 1, -3600, 3600, 10**6, -(10**6), 10**12))
    return record[: part.start()] + str(value).encode() + record[part.end() :]


def _cross(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Go on with the rest of another record."""
    other = chance.choice(others)
    own = [cut.start() for cut in _CUT.finditer(record)] or [len(record)]
    foreign = [cut.start() for cut in _CUT.finditer(other)] or [0]
    return record[: chance.choice(own)] + other[chance.choice(foreign) :]


_WAYS = (_flip, _cut_out, _end_early, _double, _put_in, _replace, _replace, _count, _count, _cross)
