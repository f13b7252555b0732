"""What a close is made of besides the rows before it: fixed in the row that begins it, so that it never moves."""

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.closing import Frozen, StreamPosition
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel import zone_data
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import queries
from gpuledger.ledger.copying import driver


def frozen(connection: Reader | Writer, period: str, calendar: Calendar) -> Frozen:
    """Return what a close of a period is made of, as it stands now.

    Positions of streams move in the transaction of the rows that they brought: those of this book stand still while
    it is locked.
    """
    start_s, end_s = calendar.period_bounds_s(period)
    rows = driver(connection).execute(
        "SELECT consumer, stream, partition, position FROM ledger.stream_offsets"
        ' ORDER BY consumer COLLATE "C", stream COLLATE "C", partition'
    )
    return Frozen(
        org_seq=queries.sequences(connection).get(ORG_BOOK, 0),
        timezone=calendar.timezone,
        tzdata=zone_data.version(calendar.timezone),
        starts_at=instant(start_s),
        ends_at=instant(end_s),
        positions=[
            StreamPosition(consumer=consumer, stream=stream, partition=partition, position=position)
            for consumer, stream, partition, position in rows
        ],
    )
