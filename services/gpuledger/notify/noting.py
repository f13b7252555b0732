"""Write down what somebody came upon, so that people are told of it; it must never be what stops them."""

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from gpuledger.kernel.clock import Clock
from gpuledger.kernel.errors import GpuledgerError
from gpuledger.notify import running
from gpuledger.notify.notices import Notice
from gpuledger.notify.recipients import load_recipients
from gpuledger.settings import Settings


def note_found(settings: Settings, engine: sa.Engine, notice: Notice, clock: Clock) -> str | None:
    """Write down a notice where anybody is told anything; the next run of a sender tells whom it is for.

    Args:
        settings: Where the file of recipients is.
        engine: The database.
        notice: What was come upon.
        clock: The present.

    Returns:
        Why it could not be written down; None where it was, or where nobody is told anything.
    """
    try:
        recipients = load_recipients(settings)
        if recipients is not None:
            running.note(engine, recipients, notice, clock)
    except (GpuledgerError, SQLAlchemyError) as error:
        said = error.message if isinstance(error, GpuledgerError) else type(error).__name__
        return f"nobody is told of {notice.kind.value}: {said}"
    return None
