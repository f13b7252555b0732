"""Laws of lots, and their arithmetic against an oracle that moves single tokens."""

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import event, given
from hypothesis import strategies as st
from tests.property.ledger import lots_oracle

from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.rollover import Rollover
from gpuledger.ledger.lots import ROLLED, Lot, Settlement, net_uses, settle

FIRST = dt.date(2026, 3, 1)
GRAINS = (8, 125, 250, 500, 1000)
"""What a token of the oracle is worth; each divides the weight of one, so that limits are whole tokens."""


class World(NamedTuple):
    """A period with its lots and the single movements of use; amounts are weighted."""

    grain: int
    last_day: dt.date
    lots: tuple[Lot, ...]
    movements: tuple[tuple[dt.date, int], ...]

    @property
    def uses(self) -> dict[dt.date, int]:
        sums: Counter[dt.date] = Counter()
        for day, amount in self.movements:
            sums[day] += amount
        return dict(sums)

    @property
    def granted(self) -> int:
        return sum(lot.amount for lot in self.lots)

    def settled(self, today: dt.date, *, closed: bool = False) -> Settlement:
        return settle(
            self.lots, self.uses, first_day=FIRST, last_day=self.last_day, today=today, closed=closed
        )

    def closed(self) -> Settlement:
        return self.settled(day_after(self.last_day), closed=True)


def day_after(day: dt.date, days: int = 1) -> dt.date:
    return day + dt.timedelta(days=days)


def worlds(grain: int, most: int, limit_gpu_ms: int) -> st.SearchStrategy[World]:
    """Draw periods of one to eight days with edges everywhere, before and after them too."""
    amounts, numbers = st.integers(1, most).map(lambda tokens: tokens * grain), st.integers(0, 11)
    bounds = st.integers(0, limit_gpu_ms)
    rollovers = st.one_of(
        st.none(),
        bounds.map(Rollover),
        bounds.map(lambda most: Rollover(0, most)),
        st.tuples(bounds, bounds).map(lambda pair: Rollover(min(pair), max(pair))),
    )
    lots = st.tuples(
        st.none() | st.integers(-1, 1), st.none() | numbers, st.integers(1, 3), amounts, rollovers
    )
    movements = st.tuples(numbers, st.one_of(amounts, amounts, amounts.map(lambda amount: -amount)))

    def build(days: int, names: Sequence[str], lots: list[Any], movements: list[tuple[int, int]]) -> World:
        found = [
            Lot(name, priority, None if n is None else day_after(FIRST, n % (days + 4) - 1), *rest)
            for name, (priority, n, *rest) in zip(names, lots, strict=False)
        ]
        moved = tuple((day_after(FIRST, n % days), amount) for n, amount in movements)
        return World(grain, day_after(FIRST, days - 1), tuple(found), moved)

    return st.builds(
        build, st.integers(1, 8), st.permutations("abcde"), st.lists(lots, max_size=5),
        st.lists(movements, max_size=8),
    )  # fmt: skip


any_world = worlds(grain=1, most=10**16, limit_gpu_ms=10**13)
small_world = st.one_of([worlds(grain, 30, 12 * grain // WEIGHT_ONE + 1) for grain in GRAINS])
todays = st.integers(-3, 14).map(lambda n: day_after(FIRST, n))


def played(world: World, today: dt.date, *, closed: bool) -> lots_oracle.Outcome:
    def number(day: dt.date) -> int:
        return (day - FIRST).days

    coins = []
    for lot in world.lots:
        limits = None
        if lot.rollover is not None:
            least, most = (x if x is None else x * WEIGHT_ONE // world.grain for x in lot.rollover)
            limits = (least or 0, most)
        gone = None if lot.expires_on is None else number(lot.expires_on)
        coins.append(
            lots_oracle.Coins(lot.name, lot.priority, gone, lot.created, lot.amount // world.grain, limits)
        )
    movements = [(number(day), amount // world.grain) for day, amount in world.movements]
    return lots_oracle.play(coins, movements, 0, number(world.last_day), number(today), over=closed)


@given(small_world, todays)
def test_an_open_period_is_what_the_tokens_say(world: World, today: dt.date) -> None:
    check_against_tokens(world, today, closed=False)


@given(small_world, st.integers(1, 5))
def test_a_closed_period_is_what_the_tokens_say(world: World, days: int) -> None:
    done = check_against_tokens(world, day_after(world.last_day, days), closed=True)
    event(f"rolled {bool(done.rolled)}, topped up {done.topped_up > 0}, overrun {done.overrun > 0}")


def check_against_tokens(world: World, today: dt.date, *, closed: bool) -> Settlement:
    grain, got, expected = (
        world.grain,
        world.settled(today, closed=closed),
        played(world, today, closed=closed),
    )
    assert got.expired == {day_after(FIRST, day): n * grain for day, n in expected.lost.items()}
    assert sorted((lot.name, lot.expires_on, lot.amount) for lot in got.rolled) == sorted(
        (ROLLED + name, None if gone is None else day_after(FIRST, gone), count * grain)
        for name, gone, count in expected.next_period
    )
    assert (got.carried, got.topped_up, got.overrun) == (
        expected.moved * grain,
        expected.issued * grain,
        expected.debt * grain,
    )
    return got


@given(any_world)
def test_the_budget_of_a_closed_period_ends_at_nothing(world: World) -> None:
    used = sum(net_uses(world.uses).values())
    assert world.granted - used - sum(world.closed().expired.values()) == 0
    assert used == max(0, sum(world.uses.values()))  # refunds beyond all use stay in the budget


@given(any_world)
def test_the_next_budget_begins_with_its_lots_less_the_debt(world: World) -> None:
    done = world.closed()
    assert done.carried + done.topped_up == sum(lot.amount for lot in done.rolled) - done.overrun
    assert min(done.topped_up, done.overrun, done.carried + done.overrun) >= 0


@given(any_world, todays)
def test_an_open_period_keeps_what_neither_use_nor_lapse_took(world: World, today: dt.date) -> None:
    done, edge = world.settled(today), min(today, world.last_day)
    covered = sum(net_uses(world.uses).values()) - done.overrun
    living = sum(lot.amount for lot in world.lots if lot.expires_on is None or lot.expires_on > edge)
    assert 0 <= world.granted - covered - sum(done.expired.values()) <= living
    assert (done.rolled, done.carried, done.topped_up) == ((), 0, 0)
    assert all(amount > 0 for amount in done.expired.values())


@given(any_world)
def test_an_overrun_and_a_rest_never_meet(world: World) -> None:
    """The only amount below zero is the debt, on the last day, and then nothing else expires there by the close."""
    done = world.closed()
    lapsed = world.settled(day_after(world.last_day)).expired.get(world.last_day, 0)
    if done.overrun:
        assert done.expired.get(world.last_day, 0) == lapsed - done.overrun
        assert done.carried == -done.overrun
    else:
        assert min(done.expired.values(), default=1) > 0
    assert all(amount > 0 for day, amount in done.expired.items() if day != world.last_day)


@given(any_world, st.integers())
def test_the_order_in_which_lots_are_told_does_not_matter(world: World, seed: int) -> None:
    shuffled = list(world.lots)
    random.Random(seed).shuffle(shuffled)
    assert world._replace(lots=tuple(shuffled)).closed() == world.closed()


@given(any_world, todays, todays)
def test_what_has_lapsed_stays_lapsed(world: World, one: dt.date, other: dt.date) -> None:
    earlier, later = (world.settled(today) for today in sorted((one, other)))
    assert earlier.overrun == later.overrun
    assert all(later.expired[day] >= amount for day, amount in earlier.expired.items())
    for day, amount in later.expired.items():
        if day_after(day) <= min(one, other) and day > FIRST:
            assert earlier.expired[day] == amount


@given(any_world)
def test_the_close_changes_the_last_day_only(world: World) -> None:
    lapsed, done = world.settled(day_after(world.last_day)).expired, world.closed().expired
    days = (lapsed.keys() | done.keys()) - {world.last_day}
    assert all(lapsed[day] == done[day] for day in days)


@given(any_world, st.integers(0, 20))
def test_a_close_that_comes_late_is_the_same_close(world: World, days: int) -> None:
    late = day_after(world.last_day, 1 + days)
    assert world.settled(late, closed=True) == world.closed()


@given(any_world, st.integers(0, 6), st.integers(0, 10**16))
def test_splitting_use_between_days_without_an_edge_between_changes_nothing(
    world: World, number: int, part: int
) -> None:
    """Part of the use of one day is told of the day after: the same lots live on both."""
    day = day_after(FIRST, number % ((world.last_day - FIRST).days or 1))
    after = min(day_after(day), world.last_day)
    lots = tuple(lot for lot in world.lots if lot.expires_on != after)
    used = (*((on, abs(amount)) for on, amount in world.movements), (day, part))
    whole = world._replace(lots=lots, movements=used).closed()
    split = world._replace(lots=lots, movements=(*used, (day, -part), (after, part))).closed()
    assert split == whole


@given(any_world, st.integers(1, 10**16), st.integers(1, 10**16))
def test_splitting_a_lot_changes_no_total(world: World, one: int, other: int) -> None:
    """Two lots of equal order, under rules without bounds: bounds hold for each lot by itself."""
    lots = [lot._replace(rollover=lot.rollover and Rollover(), created=n) for n, lot in enumerate(world.lots)]
    model = lots.pop() if lots else Lot("f", None, None, 9, 1, Rollover())
    halves = (model._replace(amount=one), model._replace(name=f"{model.name}/2", amount=other))
    whole = world._replace(lots=(*lots, model._replace(amount=one + other))).closed()
    split = world._replace(lots=(*lots, *halves)).closed()
    assert split._replace(rolled=()) == whole._replace(rolled=())
    assert by_creation(split.rolled) == by_creation(whole.rolled)


@given(any_world)
def test_a_carried_lot_is_a_lot_of_the_next_period(world: World) -> None:
    done = world.closed()
    before = {ROLLED + lot.name: lot for lot in world.lots}
    for lot in done.rolled:
        source = before[lot.name]
        assert (lot.priority, lot.created, lot.rollover) == (source.priority, source.created, source.rollover)
        assert lot.amount > 0
        assert lot.expires_on is None or lot.expires_on > day_after(world.last_day)
    first = day_after(world.last_day)
    following = settle(
        done.rolled, {first: done.overrun}, first_day=first, last_day=day_after(first, 30), today=first,
        closed=False,
    )  # fmt: skip
    owed = done.overrun - sum(lot.amount for lot in done.rolled)
    assert following.overrun == max(0, owed)


@given(st.lists(st.integers(-(10**12), 10**12), max_size=10))
def test_refunds_take_from_use_and_nothing_else(amounts: list[int]) -> None:
    uses = {day_after(FIRST, n): amount for n, amount in enumerate(amounts)}
    left = net_uses(uses)
    assert list(left) == sorted(left)
    assert sum(left.values()) == max(0, sum(amounts))
    assert all(0 < amount <= uses[day] for day, amount in left.items())


@given(st.lists(st.integers(0, 10**12), max_size=10))
def test_without_refunds_use_stays_what_it_is(amounts: list[int]) -> None:
    uses = {day_after(FIRST, n): amount for n, amount in enumerate(amounts)}
    assert net_uses(uses) == {day: amount for day, amount in uses.items() if amount}


def by_creation(lots: Sequence[Lot]) -> Counter[int]:
    sums: Counter[int] = Counter()
    for lot in lots:
        sums[lot.created] += lot.amount
    return sums
