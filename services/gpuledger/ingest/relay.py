"""The outbox relay: what was committed is published, at least once and in order."""

import sqlalchemy as sa

from gpuledger.database.engine import Writer
from gpuledger.kernel.clock import Clock
from gpuledger.ledger import outbox
from gpuledger.ledger.attempts import booked
from gpuledger.streams.protocol import Broker, Message

BATCH = 500


def relay(engine: sa.Engine, broker: Broker, clock: Clock) -> int:
    """Publish everything that waits in the outbox; return how many messages.

    Rows are locked while they are published, so two relays never interleave; a crash after the
    publication and before the commit publishes again, as does a transaction that the database gives
    up for the sake of another, and readers know events by their identity.

    Raises:
        Unavailable: When the broker or database cannot be reached.
    """
    publisher = broker.publisher()

    def some(writer: Writer) -> int:
        queued = outbox.waiting(writer, BATCH)
        if queued:
            broker.ensure_topics(sorted({item.topic for item in queued}))
            for item in queued:
                publisher.publish(item.topic, [Message(item.key, item.value)])
            publisher.flush()
            outbox.mark_published(writer, [item.id for item in queued], clock.now())
        return len(queued)

    published = 0
    try:
        while found := booked(engine, None, some):
            published += found
        return published
    finally:
        publisher.close()
