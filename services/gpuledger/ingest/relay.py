"""The outbox relay: what was committed is published, at least once and in order."""

import sqlalchemy as sa

from gpuledger.database.engine import writing
from gpuledger.kernel.clock import Clock
from gpuledger.ledger import outbox
from gpuledger.streams.protocol import Broker, Message

BATCH = 500


def relay(engine: sa.Engine, broker: Broker, clock: Clock) -> int:
    """Publish everything that waits in the outbox; return how many messages.

    Rows are locked while they are published, so two relays never interleave; a crash after the
    publication and before the commit publishes again, and readers know events by their identity.

    Raises:
        Unavailable: When the broker or database cannot be reached.
    """
    published = 0
    publisher = broker.publisher()
    try:
        while True:
            with writing(engine) as writer:
                queued = outbox.waiting(writer, BATCH)
                if not queued:
                    return published
                broker.ensure_topics(sorted({item.topic for item in queued}))
                for item in queued:
                    publisher.publish(item.topic, [Message(item.key, item.value)])
                publisher.flush()
                outbox.mark_published(writer, [item.id for item in queued], clock.now())
                published += len(queued)
    finally:
        publisher.close()
