"""Which version of the time-zone data says where the organisation's days begin."""

import zoneinfo
from pathlib import Path

_RELEASE = "tzdata.zi"
"""What stands beside compiled zones; its first line is ``# version 2026b``."""

UNKNOWN = "unknown"


def version(timezone: str, folders: tuple[str, ...] | None = None) -> str:
    """Return the release of the time-zone data that a zone is read from, such as ``2026b``.

    The machine's own data come first, as ``zoneinfo`` looks them up; then those of the package.

    Args:
        timezone: An IANA name.
        folders: Where the machine keeps compiled zones; where ``zoneinfo`` looks unless given.
    """
    for folder in zoneinfo.TZPATH if folders is None else folders:
        if Path(folder, timezone).is_file():
            return _release(Path(folder, _RELEASE))
    from tzdata import IANA_VERSION

    return str(IANA_VERSION)


def _release(path: Path) -> str:
    """Read the first line of a release; machines that leave the file out do not say which they have."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        return UNKNOWN
    return words[-1] if words[:2] == ["#", "version"] else UNKNOWN
