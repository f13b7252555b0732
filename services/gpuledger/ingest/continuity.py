"""Whether a topic is still the one that was read: one that was created anew holds other records at the same positions.

A position alone does not show it once the new topic has grown past it, and what it held before that would be left out
in silence. So the record before each stored position is read again: it was published when the ledger remembers.
"""

import datetime as dt
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import NamedTuple

from gpuledger.kernel.clock import instant, iso
from gpuledger.streams.protocol import Broker, PositionLost, Record
from gpuledger.streams.topics import Topic

WAIT_S = 5.0
"""How long a record is waited for; where none comes nothing can be told."""


class Stood(NamedTuple):
    """Where a reader stood.

    Args:
        position: The next position to read.
        published_at: When the record before it had been published; None where the broker did not say.
    """

    position: int
    published_at: dt.datetime | None


def published(record: Record) -> dt.datetime | None:
    """Return when a record was published, in whole seconds; None where the broker does not say."""
    return None if record.published_ms is None else instant(record.published_ms // 1000)


def check(broker: Broker, topic: Topic, stood: Mapping[int, Stood]) -> None:
    """Make sure that a topic holds what was read of it, as far as it still holds anything of that.

    Positions that it does not hold at all are left to whoever reads on from them.

    Raises:
        PositionLost: When it holds another record in the place of the last one that was read.
        Unavailable: When the broker cannot be reached.
    """
    known = {partition: one for partition, one in stood.items() if one.position and one.published_at}
    if not known:
        return
    with closing(broker.subscriber(topic)) as subscriber:
        first = subscriber.first_positions(sorted(known))
        for partition, (position, published_at) in sorted(known.items()):
            if position - 1 < first[partition]:
                continue  # its time was over
            found: list[Record] = []
            with suppress(PositionLost):
                subscriber.assign({partition: position - 1})
                found = [one for one in subscriber.poll(1, WAIT_S) if one.position == position - 1]
            if (
                found
                and published_at is not None
                and (now := published(found[0])) not in {None, published_at}
            ):
                raise PositionLost(
                    f"partition {partition} of topic {topic} is another than was read: its record {position - 1} is of"
                    f" {iso(now) if now else 'no time'}, the one that was read there is of {iso(published_at)}",
                    hint="the topic was created anew: read what it holds now from its beginning with"
                    " gpuledger ingest --from-start; what is booked is not booked twice",
                )
