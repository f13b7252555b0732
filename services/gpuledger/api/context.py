"""What every route is given by the composition root."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuledger.kernel.amounts import gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, iso, seconds

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

    def as_of(self) -> str:
        """Return the present as the instant an answer speaks of."""
        return iso(self.clock.now())


def hours_of(row: dict[str, Any]) -> dict[str, str | None]:
    """Return the amounts of a row as decimal GPU-hours, under their names without the unit."""
    return {
        name.removesuffix(_SUFFIX): None if value is None else str(gpu_hours(value))
        for name, value in row.items()
        if name.endswith(_SUFFIX)
    }
