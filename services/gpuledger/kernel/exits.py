"""The status with which a process ends, by what its caller can do about an error."""

from gpuledger.kernel.errors import Conflict, GpuledgerError, NotFound, Refused, Unavailable

FAILED, USAGE, PROBLEMS, NOT_FOUND, TRY_AGAIN = 1, 2, 3, 4, 75


def exit_status(error: GpuledgerError) -> int:
    """Return the exit status for an error, by what the caller can do about it."""
    match error:
        case NotFound():
            return NOT_FOUND
        case Refused():
            return USAGE
        case Unavailable() | Conflict():
            return TRY_AGAIN
        case _:
            return FAILED
