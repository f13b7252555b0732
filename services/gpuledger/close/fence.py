"""One closer of a cluster at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from gpuledger.database.turns import one_at_a_time
from gpuledger.kernel.errors import Conflict

PATIENCE_S = 600
"""How long a closer waits for another one."""


@contextmanager
def one_closer(engine: sa.Engine, cluster: str, patience_s: int = PATIENCE_S) -> Iterator[None]:
    """Keep other closers of the cluster waiting until the block ends, or this process does.

    What keeps a close right is not this lock: each of its rows names the version that it belongs to. The lock keeps
    two from doing the same work.

    Raises:
        Conflict: When another one does not come to an end.
        Unavailable: When the database cannot be reached.
    """
    busy = Conflict(
        f"another closer of {cluster} is at work",
        hint="wait for it; what it leaves undone is done by the next",
    )
    with one_at_a_time(engine, f"close/{cluster}", busy, patience_s):
        yield
