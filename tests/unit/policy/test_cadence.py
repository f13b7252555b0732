"""By when a reservation has led to a start, whatever the interval of cycles."""

import pytest

from gpuledger.policy.cadence import Cadence
from gpuledger.policy.state import PolicyConfig, Reservation, ReservationKind

CONFIG = PolicyConfig(grace_s=100, notice_s=900)


def kept(kind: ReservationKind, at_s: int) -> Reservation:
    return Reservation(workload="w", placement={"h": 8000}, at_s=at_s, kind=kind)


BOUND, PROMISE = ReservationKind.BOUND, ReservationKind.PROMISE


@pytest.mark.parametrize("every_s", [1, 60, 300])
def test_a_bound_is_looked_at_within_an_interval_and_started_within_one_after_the_grace(every_s: int) -> None:
    cadence = Cadence(decided_s=1000, every_s=every_s)
    assert cadence.latest_start_s(kept(BOUND, 3600), 1000, CONFIG) == 3600 + every_s + 100 + every_s
    assert cadence.latest_start_s(kept(PROMISE, 1100), 1000, CONFIG) == 1100 + every_s


def test_a_date_stands_between_two_cycles_and_moves_only_when_the_next_one_is_overdue() -> None:
    cadence = Cadence(decided_s=1000, every_s=300)
    due = kept(BOUND, 900)
    assert {cadence.latest_start_s(due, at_s, CONFIG) for at_s in (1000, 1001, 1300)} == {
        1000 + 300 + 100 + 300
    }
    assert cadence.latest_start_s(due, 1310, CONFIG) == 1010 + 300 + 100 + 300


def test_what_is_not_submitted_yet_counts_grace_and_notice_from_the_cycle_to_come() -> None:
    cadence = Cadence(decided_s=900, every_s=300)
    asked = cadence.latest_start_if_submitted_s
    assert asked(kept(PROMISE, 1100), 1000, CONFIG) == 1300 + 100 + 300
    assert asked(kept(BOUND, 1900), 1000, CONFIG) == 1300 + 900 + 300 + 100 + 300
    assert asked(kept(BOUND, 9000), 1000, CONFIG) == 9000 + 300 + 100 + 300


def test_what_is_not_known_is_said() -> None:
    (no_leader,) = Cadence(decided_s=1000).doubts(1000)
    assert no_leader.startswith("No leader has recorded how often cycles come")
    assert Cadence(decided_s=1000, every_s=300).doubts(1300) == ()
    (overdue,) = Cadence(decided_s=1000, every_s=300).doubts(1301)
    assert overdue.startswith("No cycle has come since 1970-01-01T00:16:40Z, though one was due every 5 min")
