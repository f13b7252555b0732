"""When a notice may be sent: after how long again, and not in quiet hours. Pure."""

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

DELAYS_S = (60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""How long after each attempt that failed the next one is; after the last one it is given up, some three days on."""


def next_attempt(attempts: int, now: dt.datetime) -> dt.datetime | None:
    """Return when a notice is tried again; None when it is given up.

    Args:
        attempts: How many failed, this one included.
        now: When it failed.
    """
    return now + dt.timedelta(seconds=DELAYS_S[attempts - 1]) if attempts <= len(DELAYS_S) else None


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours in which nobody wants mail, by the clock of the organisation; they may go over midnight.

    Args:
        from_: When they begin.
        to: When they end, exclusive.
    """

    from_: dt.time
    to: dt.time

    def holds(self, at: dt.datetime, timezone: str) -> bool:
        """Say whether an instant lies in them."""
        clock = at.astimezone(ZoneInfo(timezone)).time()
        if self.from_ <= self.to:
            return self.from_ <= clock < self.to
        return clock >= self.from_ or clock < self.to
