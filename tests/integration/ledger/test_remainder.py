"""What the time since a book's last tick adds: open runs go on, holds drain and lapse, nothing is counted twice."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    at,
    ended,
    granted,
    started,
    submitted,
    told,
)
from tests.integration.ledger.test_admission import ask, order

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.closing import LedgerTicked
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.clock import FixedClock, seconds
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.remainder import remainder

NOW_S = seconds(NOON)
DECEMBER, JANUARY = "2026-12", "2027-01"


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours for December and asks for 8 GPUs for an hour."""
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(0, granted("org/vision", DECEMBER, 100 * GPU_HOUR)))
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=HOUR)))
    return ledger


def tick(ledger: Ledger, at_s: int) -> None:
    ledger.append(told(at_s, LedgerTicked(cluster=CLUSTER)))


def rest(
    ledger: Ledger,
    now_s: int,
    cluster: str | None = CLUSTER,
    as_of: dt.datetime | None = None,
    *,
    as_known: bool = False,
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return (account, period) -> charged, held, unallocated in GPU-hours, without what comes to nothing."""
    with reading(ledger.engine) as reader:
        found = remainder(reader, cluster, now_s, as_of, ledger.calendar, as_known=as_known)
    unit = GPU_HOUR * WEIGHT_ONE
    amounts = {
        (account, period): (part.charged / unit, part.held / unit, part.unallocated / unit)
        for (_, account, period), part in found.items()
    }
    return {place: row for place, row in amounts.items() if any(row)}


def test_a_run_that_goes_on_is_charged_up_to_the_present(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted()), told(NOW_S, started()))
    assert rest(ledger, NOW_S) == {}
    assert rest(ledger, NOW_S + 2 * HOUR) == {("org/vision", DECEMBER): (16, 0, 0)}
    ledger.append(told(NOW_S + 2 * HOUR, ended()))
    assert rest(ledger, NOW_S + 9 * HOUR) == {}


def test_a_run_with_a_limit_is_charged_no_further(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted(time_limit_s=HOUR)), told(NOW_S, started()))
    assert rest(ledger, NOW_S + HOUR // 2) == {("org/vision", DECEMBER): (4, 0, 0)}
    assert rest(ledger, NOW_S + 9 * HOUR) == {("org/vision", DECEMBER): (8, 0, 0)}
    tick(ledger, NOW_S + HOUR)
    assert rest(ledger, NOW_S + 9 * HOUR) == {}


def test_what_a_tick_posted_is_not_added_again(ledger: Ledger) -> None:
    order(ledger, *(AccountCreated(account=name) for name in ("org", "org/vision")))
    ledger.append(told(NOW_S, submitted()), told(NOW_S, started()))
    tick(ledger, NOW_S + HOUR)
    assert rest(ledger, NOW_S + HOUR) == {}
    assert rest(ledger, NOW_S + 2 * HOUR) == {("org/vision", DECEMBER): (8, 0, 0)}
    assert ledger.balance("org/vision", now=(NOON + dt.timedelta(hours=2)).isoformat()).charged_gpu_ms == (
        16 * GPU_HOUR
    )


def test_unallocated_time_goes_on_beside_it(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=0)), told(NOW_S, started()))
    assert rest(ledger, NOW_S + HOUR) == {("org/vision", DECEMBER): (0, 0, 8)}


def test_a_hold_drains_as_the_run_goes_on(funded: Ledger) -> None:
    ask(funded)
    funded.append(told(NOW_S, started()))
    assert rest(funded, NOW_S + HOUR // 4) == {("org/vision", DECEMBER): (2, -2, 0)}
    tick(funded, NOW_S + HOUR // 2)
    assert rest(funded, NOW_S + 2 * HOUR) == {("org/vision", DECEMBER): (12, -4, 0)}


def test_a_hold_drains_over_the_edge_of_a_period(funded: Ledger) -> None:
    eve = at("2026-12-31T23:30:00Z")
    funded.clock = FixedClock(dt.datetime.fromtimestamp(eve, dt.UTC))
    ask(funded)
    funded.append(told(eve, started()))
    assert rest(funded, eve + HOUR // 4) == {("org/vision", DECEMBER): (2, -2, 0)}
    assert rest(funded, eve + HOUR) == {
        ("org/vision", DECEMBER): (4, -4, 0),
        ("org/vision", JANUARY): (4, -4, 0),
    }
    assert rest(funded, eve + 2 * HOUR)["org/vision", JANUARY] == (12, -4, 0)


def test_a_hold_that_nobody_used_lapses_between_ticks(funded: Ledger) -> None:
    ask(funded)
    assert rest(funded, NOW_S + 899) == {}
    assert rest(funded, NOW_S + 900) == {("org/vision", DECEMBER): (0, -8, 0)}
    tick(funded, NOW_S + HOUR)
    assert rest(funded, NOW_S + HOUR) == {}
    assert funded.balance("org/vision", DECEMBER).held_gpu_ms == 0


def test_each_cluster_has_its_own(ledger: Ledger) -> None:
    ledger.append(told(NOW_S, submitted()), told(NOW_S, started()))
    ledger.append(
        told(NOW_S, submitted(cluster="beta")), told(NOW_S, started(cluster="beta", gpus_milli=1000))
    )
    assert rest(ledger, NOW_S + HOUR, "beta") == {("org/vision", DECEMBER): (1, 0, 0)}
    with reading(ledger.engine) as reader:
        found = remainder(reader, None, NOW_S + HOUR, None, ledger.calendar)
    assert {book for book, _, _ in found} == {CLUSTER, "beta"}


def test_what_was_recorded_later_is_not_seen_from_before(funded: Ledger) -> None:
    ask(funded)
    funded.append(told(NOW_S, started()))
    before = funded.value("SELECT max(recorded_at) FROM ledger.journal")
    funded.clock = FixedClock(NOON + dt.timedelta(hours=3))
    tick(funded, NOW_S + 2 * HOUR)
    funded.append(told(NOW_S + HOUR, ended()))
    assert rest(funded, NOW_S + HOUR // 2, as_of=before) == {("org/vision", DECEMBER): (4, -4, 0)}
    assert rest(funded, NOW_S + 3 * HOUR) == {}


def test_what_lapses_in_a_closed_period_is_given_back_in_the_open_one(funded: Ledger) -> None:
    """Closed between the admission and its expiry; over one cluster or over all it reads the same."""
    eve = at("2026-12-31T23:55:00Z")
    funded.clock = FixedClock(dt.datetime.fromtimestamp(eve, dt.UTC))
    ask(funded)
    funded.clock = FixedClock(dt.datetime.fromtimestamp(eve + 360, dt.UTC))
    before = funded.value("SELECT max(recorded_at) FROM ledger.journal")
    with writing(funded.engine) as writer:
        close_period(writer, CLUSTER, DECEMBER, "ada", clock=funded.clock, calendar=funded.calendar)
    for cluster in (CLUSTER, None):
        assert rest(funded, eve + 900, cluster) == {("org/vision", JANUARY): (0, -8, 0)}
        assert set(rest(funded, eve + 900, cluster, as_known=True)) == {
            ("org/vision", DECEMBER),
            ("org/vision", JANUARY),
        }
        # As of the moment before the close December still took bookings.
        assert set(rest(funded, eve + 900, cluster, as_of=before)) == {
            ("org/vision", DECEMBER),
            ("org/vision", JANUARY),
        }
