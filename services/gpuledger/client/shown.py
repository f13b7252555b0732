"""The token that a program shows the API, kept in a file."""

from pathlib import Path

from gpuledger.kernel.errors import Refused


def token_in(file: Path | None) -> str | None:
    """Return the token in the first line of a file; None where no file is named.

    Raises:
        Refused: When it cannot be read.
    """
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            f"GPULEDGER_API_TOKEN_FILE: {file} cannot be read: {type(error).__name__}",
            hint="name a file with a token in its first line that you may read",
        ) from error
