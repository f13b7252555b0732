"""What a close is made of besides rows is in the row that begins it: zone, time-zone data, positions, ~org."""

from tests.integration.ledger.books import CLUSTER, Ledger, told
from tests.integration.ledger.test_closing import NOVEMBER, close, funded

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.events.closing import StreamPosition
from gpuledger.kernel import zone_data
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import iso
from gpuledger.ledger.close_rows import close_of
from gpuledger.ledger.freezing import frozen

__all__ = ["funded"]

BERLIN = "Europe/Berlin"


def test_the_period_is_cut_in_the_organisations_zone(ledger: Ledger) -> None:
    with reading(ledger.engine) as reader:
        found = frozen(reader, NOVEMBER, Calendar(BERLIN))
    assert (iso(found.starts_at), iso(found.ends_at)) == ("2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z")
    assert (found.timezone, found.tzdata) == (BERLIN, zone_data.version(BERLIN))
    assert (found.org_seq, found.positions) == (0, [])


def test_a_close_keeps_what_stood_when_it_began(funded: Ledger) -> None:
    insert = "INSERT INTO ledger.stream_offsets (consumer, stream, partition, position, epoch) VALUES "
    funded.change(insert + "('b', 's', 1, 5, 1), ('a', 's', 0, 7, 1)")
    close(funded)
    funded.change("UPDATE ledger.stream_offsets SET position = position + 1")
    funded.append(told(0, AccountCreated(account="org/new")))
    with reading(funded.engine) as reader:
        kept = close_of(reader, CLUSTER, NOVEMBER).closing.frozen
    assert kept is not None
    assert kept.org_seq == 2
    assert kept.positions == [
        StreamPosition(consumer="a", stream="s", partition=0, position=7),
        StreamPosition(consumer="b", stream="s", partition=1, position=5),
    ]
