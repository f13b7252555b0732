"""Recorded time as people ask for it: what the books said then (law 6). Pure."""

import datetime as dt

from gpuledger.kernel.errors import Refused


def not_to_come(at: dt.datetime, given: str, now: dt.datetime) -> dt.datetime:
    """Return a recorded time that is over.

    What was said by a time that is still to come would be another thing each time it is asked.

    Args:
        at: The time.
        given: Where it was given and how, for the message.
        now: The present.

    Raises:
        Refused: When it lies in the future.
    """
    if at > now:
        raise Refused(
            f"{given} is still to come, and nobody knows what the books will say then",
            hint="leave it out for what they say now",
        )
    return at
