"""The calendar of a cluster from a ledger."""

import datetime as dt
from collections.abc import Iterator

import pytest
from tests.integration.policy.stories import HOUR, NOON, World, event, small_cluster, started

from gpuledger.database.engine import reading
from gpuledger.events.budget import Granted
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.kernel.errors import NotFound
from gpuledger.policy.agenda import Agenda, Kind
from gpuledger.policy.upcoming import upcoming


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    with small_cluster(database_url) as found:
        yield found


def agenda(world: World, at_s: int = NOON, cluster: str = "c") -> Agenda:
    with reading(world.engine) as reader:
        return upcoming(reader, cluster, at_s=at_s, calendar=Calendar())


def test_everything_that_is_to_come_stands_in_order_of_time(world: World) -> None:
    grant = Granted(
        account="c/a", cluster="c", period="2027-01", gpu_ms=3_600_000, expires_at=instant(NOON + 12 * HOUR),
        reason="test", by="test",
    )  # fmt: skip
    world.take(event("grant", NOON - HOUR, grant))
    world.cycle()
    world.take(started("w-b4", NOON, 4))
    world.admit("w-b8", NOON + 30)
    found = agenda(world, NOON + 60)
    assert [(one.kind.value, one.workload or one.account) for one in found.entries] == [
        ("hold expires", "w-b8"),
        ("protection ends", "w-a"),
        ("protection ends", "w-b4"),
        ("reservation", "w-b8"),
        ("budget lapses", "c/a"),
        ("period ends", None),
        ("period ends", None),
    ]
    document = found.as_json()
    assert document["entries"][-2]["at"] == "2027-02-01T00:00:00Z"
    assert document["entries"][4]["at"] == "2027-01-16T00:00:00Z"


def test_a_lot_that_outlives_its_period_lapses_on_no_day_of_it(world: World) -> None:
    """2027-02-01 is the natural end of 2027-01; what ends later is carried over by the close, or ends with it."""
    for name, day in (("within", 31), ("at the end", 32), ("later", 42)):
        grant = Granted(
            account="c/a", cluster="c", period="2027-01", gpu_ms=3_600_000, reason="test", by="test",
            expires_at=dt.datetime(2027, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=day - 1),
        )  # fmt: skip
        world.take(event(name, NOON - HOUR, grant))
    lapses = [one["at"] for one in agenda(world).as_json()["entries"] if one["kind"] == "budget lapses"]
    assert lapses == ["2027-01-31T00:00:00Z"]


def test_holds_and_lots_are_those_of_the_instant_that_is_asked_about(world: World) -> None:
    """What was set aside then is told then, though it was drained since; what came later is not."""
    world.cycle()
    world.admit("w-b4", NOON + 30)
    world.take(started("w-b4", NOON + 90, 4))
    grant = Granted(
        account="c/a", cluster="c", period="2027-01", gpu_ms=3_600_000, expires_at=instant(NOON + 12 * HOUR),
        reason="test", by="test",
    )  # fmt: skip
    world.take(event("grant", NOON + 60, grant))

    def told(at_s: int) -> list[str]:
        kinds = (Kind.HOLD_EXPIRY, Kind.LOT_LAPSE)
        return [one.workload or one.kind.value for one in agenda(world, at_s).entries if one.kind in kinds]

    assert told(NOON + 29) == []
    assert told(NOON + 59) == ["w-b4"]
    assert told(NOON + 60) == ["w-b4", "budget lapses"]
    assert told(NOON + 90) == ["budget lapses"]


@pytest.mark.parametrize("every_s", [20, 300])
def test_a_reservation_has_the_date_that_why_tells_and_keeps_it_between_cycles(
    world: World, every_s: int
) -> None:
    world.led_cycle(NOON, every_s)
    dates = set()
    for at_s in (NOON, NOON + 1, NOON + every_s):
        told = world.why("w-b8", at_s).decided
        (entry,) = [one for one in agenda(world, at_s).entries if one.kind is Kind.RESERVATION]
        assert told is not None
        assert (told.starts_by_s, told.every_s, told.doubts) == (entry.at_s, every_s, ())
        dates.add(entry.at_s)
    # w-a is protected until 13:00; a cycle within the interval, a minute of grace, and the next cycle.
    assert dates == {NOON + HOUR + every_s + 60 + every_s}


def test_one_cycle_by_hand_changes_no_interval_and_without_a_leader_none_is_known(world: World) -> None:
    world.cycle(NOON)
    assert agenda(world).as_json()["every_s"] is None
    assert any(line.startswith("No leader has recorded") for line in agenda(world).lines())
    world.led_cycle(NOON + 60, 300)
    world.cycle(NOON + 300)
    assert agenda(world, NOON + 300).as_json()["every_s"] == 300
    world.cycle(NOON + 601)  # the leader's next cycle is overdue
    assert agenda(world, NOON + 601).as_json()["every_s"] is None


def test_an_unknown_cluster_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        agenda(world, cluster="nowhere")
