"""The outbox relay: what was committed is published, at least once and in order."""

import sqlalchemy as sa

from gpuledger.database.engine import writing
from gpuledger.kernel.clock import Clock
from gpuledger.ledger.copying import driver
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
                connection = driver(writer)
                rows = connection.execute(
                    "SELECT id, topic, key, value FROM ledger.outbox WHERE published_at IS NULL ORDER BY id LIMIT %s"
                    " FOR UPDATE",
                    (BATCH,),
                ).fetchall()
                if not rows:
                    return published
                broker.ensure_topics(sorted({topic for _, topic, _, _ in rows}))
                for _, topic, key, value in rows:
                    publisher.publish(topic, [Message(key, bytes(value))])
                publisher.flush()
                connection.execute(
                    "UPDATE ledger.outbox SET published_at = %s WHERE id = ANY(%s)",
                    (clock.now(), [row[0] for row in rows]),
                )
                published += len(rows)
    finally:
        publisher.close()
