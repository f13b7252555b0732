"""What senders have in common: what they are given, and how they say that it did not arrive."""

import datetime as dt
from dataclasses import dataclass
from typing import Protocol

from gpuledger.kernel.errors import Unavailable
from gpuledger.notify.recipients import Target


class Undelivered(Unavailable):
    """A target did not take a notice.

    Args:
        message: Why; without addresses and secrets, for it is kept and shown.
        is_final: Whether trying again is no use.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message, hint="gpuledger notify list shows when it is tried again")
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Message:
    """A notice on its way.

    Args:
        id: The notice's id, the same at each attempt.
        body: Its payload, the same bytes at each attempt.
        at: When it is sent.
    """

    id: str
    body: bytes
    at: dt.datetime


class Send(Protocol):
    """Brings a message to a target."""

    def __call__(self, target: Target, message: Message) -> None:
        """Return when the target has taken it.

        Raises:
            Undelivered: When it has not.
        """
        ...
