"""One row of a table of comma-separated values: its bytes -> its fields, or why they cannot be told apart."""

import csv
from collections.abc import Sequence

from gpuledger.kernel.errors import BadRecord


def row_values(header: Sequence[str], raw: bytes) -> dict[str, str]:
    """Return the fields of a row by column.

    Raises:
        BadRecord: When the bytes are no UTF-8 text, or not as many fields as the header has columns.
    """
    text = text_of(raw)
    is_quoted = '"' in text or "\r" in text
    cells = cells_of(text) if is_quoted else text.split(",")  # as the csv module would, sooner
    if len(cells) != len(header):
        raise BadRecord(
            f"{len(header)} columns expected, {len(cells)} found",
            code="wrong-columns",
            hint="look for a separator too many or too few; a field that holds a comma needs double quotes",
        )
    return dict(zip(header, cells))  # noqa: B905 - as many of one as of the other


def text_of(raw: bytes) -> str:
    """Return the text of a line.

    Raises:
        BadRecord: When the bytes are none.
    """
    if 0 in raw:
        raise BadRecord(
            f"a NUL byte at byte {raw.index(0)} of the line",
            code="nul-byte",
            hint="the file is not text, or was damaged while it was written; fetch it again",
        )
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"byte {error.start} of the line (0x{raw[error.start]:02x}) is not UTF-8",
            code="not-utf8",
            hint="convert the file to UTF-8, for example from Latin-1: iconv -f latin1 -t utf-8",
        ) from error


def cells_of(text: str) -> list[str]:
    """Return the fields of a line.

    Raises:
        BadRecord: When a quote stands where none may.
    """
    try:
        rows = list(csv.reader([text], strict=True))
    except csv.Error as error:
        raise BadRecord(
            f"the quoting is wrong: {error}",
            code="bad-csv",
            hint="double the quotes inside a quoted field; a record must stand on one line",
        ) from error
    return rows[0] if rows else []


def without_return(raw: bytes) -> bytes:
    """Return a line without the carriage return at its end, if there is one."""
    return raw[:-1] if raw.endswith(b"\r") else raw
