"""A row as one line of text: how rows of two origins are compared, and shown where they differ."""

import datetime as dt
from collections.abc import Iterable

from gpuledger.kernel.clock import seconds


def line(columns: Iterable[object]) -> str:
    """Return the columns of a row, instants as whole seconds."""
    return "\t".join(str(seconds(c)) if isinstance(c, dt.datetime) else str(c) for c in columns)
