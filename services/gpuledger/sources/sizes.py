"""Bytes on disk, for progress bars."""

from pathlib import Path

from gpuledger.kernel.errors import Refused


def file_size(path: Path) -> int:
    """Return the size of a file on disk.

    Raises:
        Refused: When it does not exist or cannot be looked at.
    """
    try:
        return path.stat().st_size
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"{path}: {reason}", hint="check the path") from error
