"""Names and sizes of files."""

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
        raise Refused(f"{path_text(path)}: {reason}", hint="check the path") from error


def path_text(path: Path) -> str:
    """Return the path as text that every store takes, even when its name is no text."""
    return str(path).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
