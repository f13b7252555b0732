"""Errors, typed by what the caller can do about them.

GpuledgerError
├── Refused        the caller's fault: mend the input and call again      (exit 2, HTTP 4xx)
│   ├── NotFound   the thing named does not exist                         (exit 4, HTTP 404)
│   ├── TooLarge   an amount is larger than the ledger can hold           (exit 2, HTTP 4xx)
│   ├── KeyReused  the idempotency key stands for another command           (exit 2, HTTP 409)
│   ├── Unidentified  nobody knows who asks: log in, then call again        (exit 2, HTTP 401)
│   ├── Forbidden  who asks may not have or do it                         (exit 2, HTTP 403)
│   └── BadRecord  one record cannot be read; it goes to the dead letters (exit 3 for the whole import)
├── Conflict       somebody else was faster: re-read and retry            (exit 75, HTTP 409)
│   └── Fenced     this worker's epoch is over; it must stop              (exit 75)
├── Unavailable    a stream or database cannot be reached: retry later    (exit 75, HTTP 503)
│   ├── Throttled  who asks did so too often: wait, then ask again         (exit 75, HTTP 429)
│   └── Collided   another transaction was in the way: the same again does (exit 75, HTTP 503)
└── Corrupt        a law of the ledger is broken: stop and page somebody  (exit 1, HTTP 500)

The message says what was wrong and where; ``hint`` says what to do next.
"""


class GpuledgerError(Exception):
    """Root of every error this package raises on purpose.

    Args:
        message: What was wrong and where (file, line, offset, field).
        hint: What a person can do about it, or an empty string.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Refused(GpuledgerError):  # noqa: N818 - the tree above reads as verdicts, not as *Error
    """The input cannot be accepted as it is."""


class NotFound(Refused):
    """The account, workload or file that was named does not exist."""


class TooLarge(Refused):
    """An amount, or a sum that it would become a part of, is larger than the ledger can hold; nothing was written."""


class KeyReused(Refused):
    """An idempotency key was used before, for another command."""


class Unidentified(Refused):
    """Who asks did not say who they are, or what they showed is not, or no longer, good."""


class Forbidden(Refused):
    """Who asks is known, and may not see or do this."""


class BadRecord(Refused):
    """One record of a source or stream cannot be understood.

    Args:
        message: What was wrong with the record.
        code: A short stable word for the kind of fault, one of ``kernel.reasons``.
        hint: What a person can do about it.
    """

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class Conflict(GpuledgerError):  # noqa: N818
    """Another writer changed what this one had read."""


class Fenced(Conflict):
    """A newer worker took over this stream; nothing was written."""


class Unavailable(GpuledgerError):  # noqa: N818
    """A stream or database cannot be reached now."""


class Collided(Unavailable):
    """The database gave a transaction up for the sake of another; nothing of it was written."""


class Throttled(Unavailable):
    """Who asks did so more often than they may.

    Args:
        message: Who, and how often they may.
        wait_s: How long to wait, in seconds.
        hint: What a person can do about it.
    """

    def __init__(self, message: str, *, wait_s: float, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.wait_s = wait_s


class Corrupt(GpuledgerError):  # noqa: N818
    """An invariant of the ledger does not hold."""
