"""How far a scheduler's records were read: a claim and an instant, kept beside the positions of streams."""

import sqlalchemy as sa

from gpuledger.ingest import offsets
from gpuledger.ledger.attempts import booked

CONSUMER = "collect"


class Cursor:
    """The instant up to which a scheduler's records are read. Who opens it fences whoever held it before.

    Args:
        engine: The database.
        stream: Whose records, such as ``sacct/alpha``.
    """

    def __init__(self, engine: sa.Engine, stream: str) -> None:
        self._engine = engine
        (self._claim,) = booked(engine, None, lambda writer: offsets.claim(writer, CONSUMER, stream, [0]))
        self._at_s = self._claim.position

    @property
    def at_s(self) -> int:
        """The instant in seconds since the epoch; 0 when nothing was read yet."""
        return self._at_s

    def advance(self, at_s: int) -> None:
        """Note that everything up to an instant is booked; it never goes back.

        Raises:
            Fenced: When another collector took over.
        """
        self._at_s = max(self._at_s, at_s)
        booked(self._engine, None, lambda writer: offsets.advance(writer, self._claim, self._at_s))
