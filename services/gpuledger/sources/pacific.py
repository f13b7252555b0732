"""The clocks of the Philly trace: some of its files say PST or PDT behind a time, which no standard reads."""

_OFFSETS = {" PST": "-08:00", " PDT": "-07:00"}
_SUFFIX_CHARACTERS = 4


def with_offset(value: str) -> str:
    """Return a time with its offset in place of PST or PDT; others are returned as they are."""
    offset = _OFFSETS.get(value[-_SUFFIX_CHARACTERS:])
    return value if offset is None else value[:-_SUFFIX_CHARACTERS] + offset
