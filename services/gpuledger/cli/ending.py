"""A command that is asked to end ends, whatever it is doing at that moment."""

import signal
import sys

INTERRUPTED, TERMINATED = 130, 143

_AGAIN_S = 0.05


def heed_signals() -> None:
    """Let SIGTERM end this process like Ctrl-C does: what was opened is closed, the embedded PostgreSQL too.

    Both raise in whatever the main thread is doing. Where that is a finaliser or a callback of the garbage
    collector, Python prints the exception and goes on as if nobody had asked; it is raised once more then, until it
    meets code that can end.
    """
    swallowed = signal.SIGTERM

    def ask_again(unraisable: "sys.UnraisableHookArgs") -> None:
        nonlocal swallowed
        if isinstance(unraisable.exc_value, SystemExit | KeyboardInterrupt):
            interrupted = isinstance(unraisable.exc_value, KeyboardInterrupt)
            swallowed = signal.SIGINT if interrupted else signal.SIGTERM
            # Not at once: what is raised within this hook would be swallowed too.
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = ask_again
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(swallowed))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def asked_to_end(error: BaseException) -> int | None:
    """Return the status of a command that was asked to end when an error came in the way; None where nobody asked.

    psycopg asks the server to cancel a query before it lets a signal through. Ctrl-C ends the embedded server
    too, and then it is the lost connection that is raised, while what was asked stands behind it.
    """
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, KeyboardInterrupt):
            return INTERRUPTED
        if isinstance(behind, SystemExit) and behind.code == TERMINATED:
            return TERMINATED
        behind = behind.__cause__ or behind.__context__
    return None
