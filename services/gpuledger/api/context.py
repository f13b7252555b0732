"""What every route is given by the composition root."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuledger.api import parameters
from gpuledger.database.engine import Reader
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, iso, seconds
from gpuledger.ledger import queries

_SUFFIX = "_gpu_ms"


@dataclass(frozen=True, slots=True)
class Context:
    """The adapters that routes use.

    Args:
        engine: The database.
        clock: The present.
        default_calendar: Cuts days and periods before the organisation has set its zone.
    """

    engine: sa.Engine
    clock: Clock
    default_calendar: Calendar

    def now_s(self) -> int:
        """Return the present as whole seconds since the epoch."""
        return seconds(self.clock.now())

    def as_of(self, believed: dt.datetime | None = None) -> str:
        """Return the instant that an answer speaks of: the recorded time asked for, the present unless given."""
        return iso(believed or self.clock.now())

    def believed(self, reader: Reader, as_of: str | None) -> dt.datetime | None:
        """Read the recorded time that is asked for, a day or an instant; None for now.

        For one that is still to come it is the present, which is all that anybody knows.

        Raises:
            Refused: When it is neither.
        """
        if as_of is None:
            return None
        calendar = queries.calendar(reader, self.default_calendar)
        at = parameters.instant_of("as_of", as_of, calendar)
        return at and min(at, self.clock.now())

    def now_or(self, believed: dt.datetime | None) -> int:
        """Return the recorded time that is asked for as whole seconds since the epoch, the present unless given."""
        return self.now_s() if believed is None else seconds(believed)


def hours_of(row: dict[str, Any]) -> dict[str, str | None]:
    """Return the amounts of a row as decimal GPU-hours, under their names without the unit."""
    return {
        name.removesuffix(_SUFFIX): None if value is None else str(gpu_hours(value))
        for name, value in row.items()
        if name.endswith(_SUFFIX)
    }
