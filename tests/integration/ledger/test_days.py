"""What accounts used and what stands is kept by day: no batch and no balance reads a month of postings again."""

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, run_of, started, submitted, told
from tests.integration.ledger.test_admission import is_sound
from tests.integration.ledger.test_commands import PERIOD, funded
from tests.integration.ledger.test_lapses import GONE_S, lapsing
from tests.integration.ledger.test_lapses import PERIOD as LAPSING
from tests.integration.ledger.test_overtaken import adjust, ends, stands

from gpuledger.database.engine import reading, writing
from gpuledger.events.closing import LedgerTicked
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.ledger.append import append
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.rebuild import check, rebuild

__all__ = ["funded", "lapsing"]

POSTINGS_READ = sa.text(
    "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
    " WHERE schemaname = 'ledger' AND starts_with(relname, 'postings')"
)


def kept(ledger: Ledger) -> list[tuple[object, ...]]:
    return ledger.rows(
        "SELECT account, day::text, used, charged, credited, unallocated FROM ledger.day_sums ORDER BY 1, 2"
    )


def test_a_day_is_summed_up_as_it_is_posted(funded: Ledger) -> None:
    funded.append(*run_of(0, HOUR, "w2", klass="unallocated"))
    adjust(funded, "charge", -5)
    ends(funded, HOUR // 2)  # four are left, and one is posted back
    hour = 1000 * GPU_HOUR  # weighted
    assert kept(funded) == [
        ("org/vision", "1970-01-01", 4 * hour, 4 * hour, 0, 8 * hour),
        # What is ordered today counts for the last day of a period that is over.
        ("org/vision", "1970-01-31", -4 * hour, -5 * hour, 0, 0),
    ]
    assert stands(funded) == (0, 0, 8, 100)
    assert is_sound(funded)


def fill(ledger: Ledger, key: str, at_s: int) -> None:
    """Two hundred short runs of the account, which leave its budget alone."""
    busy = [run_of(at_s, at_s + HOUR, f"{key}/{n}", klass="unallocated") for n in range(200)]
    ledger.append(*(event for run in busy for event in run))


def postings_read(ledger: Ledger, at_s: int, period: str, key: str) -> tuple[int, int]:
    """Return how many postings a batch of one more run reads, and then a balance."""
    with writing(ledger.engine) as writer:
        before = writer.execute(POSTINGS_READ).scalar_one()
        append(writer, CLUSTER, run_of(at_s, at_s + HOUR, key), clock=ledger.clock, calendar=ledger.calendar)
        batch = writer.execute(POSTINGS_READ).scalar_one() - before
    with reading(ledger.engine) as reader:
        before = reader.execute(POSTINGS_READ).scalar_one()
        query = BalanceQuery(CLUSTER, period)
        balance(reader, "org/vision", query, at_s + HOUR + 60, ledger.calendar)
        return int(batch), int(reader.execute(POSTINGS_READ).scalar_one() - before)


def test_of_an_adjusted_account_as_few_postings_are_read_however_busy_the_month_was(funded: Ledger) -> None:
    names = [f"early{number}" for number in range(4)]
    funded.append(*(event for name in names for event in run_of(0, HOUR, name)))
    adjust(funded, "charge", -40)
    for name in (*names, "w1"):
        ends(funded, 0, name)  # more is posted back than the runs to come are charged
    funded.append(told(HOUR, submitted("open")), told(HOUR, started("open")))
    read = []
    for number in range(3):
        fill(funded, f"busy{number}", 0)
        read += postings_read(funded, 0, PERIOD, f"one{number}")
    assert max(read) < 30, read
    assert min(read) > 0, read  # both look at what is posted back
    assert is_sound(funded)


def test_of_an_account_with_a_lapsed_lot_as_few_postings_are_read_however_busy_the_month_was(
    lapsing: Ledger,
) -> None:
    lapsing.append(told(GONE_S, LedgerTicked(cluster=CLUSTER)))
    lapsing.clock = FixedClock(instant(GONE_S + 2 * HOUR))
    read = []
    for number in range(3):
        fill(lapsing, f"busy{number}", GONE_S - HOUR)
        read += postings_read(lapsing, GONE_S - HOUR, LAPSING, f"one{number}")
    assert max(read) < 30, read
    assert is_sound(lapsing)


@pytest.mark.parametrize("changed", ["used", "charged", "credited", "unallocated"])
def test_what_is_kept_is_checked_and_made_again(funded: Ledger, changed: str) -> None:
    adjust(funded, "charge", -4)
    funded.append(*run_of(0, HOUR, "w2", klass="unallocated"))
    ends(funded, 0)
    assert is_sound(funded)
    stood = kept(funded)
    funded.change(f"UPDATE ledger.day_sums SET {changed} = {changed} + 1")
    with reading(funded.engine) as reader:
        told = {told.split(":")[0] for told in check(reader, funded.calendar).differences}
    assert told >= {"day missing", "day not in the journal"}
    with writing(funded.engine) as writer:
        rebuild(writer, funded.calendar)
    assert kept(funded) == stood
    assert is_sound(funded)
