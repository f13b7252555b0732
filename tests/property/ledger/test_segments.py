"""Facts -> segments -> amounts, without a database, against the oracle (laws 3 and 4)."""

import itertools
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger import oracle
from tests.property.ledger.oracle import Fact, Net
from tests.property.ledger.workloads import MOMENTS, known_of, worlds

from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import PHYSICAL, WEIGHTED, Booking, Key, Posted, desired, difference
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, Unfolding, derive
from gpuledger.ledger.superseded import superseded

many = settings(max_examples=3 * settings().max_examples, deadline=None)
INTERVALS = {"short": 10_000, "full": 100_000}


@many
@given(worlds(max_workloads=1))
def test_net_amounts_are_the_oracles(world: tuple[str, list[Fact]]) -> None:
    zone, facts = world
    assert amounts(derived(facts), zone) == oracle.net(facts, zone)


@many
@given(worlds(max_workloads=1))
def test_waits_are_the_oracles(world: tuple[str, list[Fact]]) -> None:
    _, facts = world
    waits = joined((wait.from_s, wait.to_s) for wait in derived(facts).waits)
    assert waits == oracle.waits(facts, "w0")


@many
@given(worlds(max_workloads=1, ties=True), st.randoms(use_true_random=False))
def test_the_order_of_arrival_and_repeats_change_nothing(
    world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    known = [known_of(number, fact) for number, fact in enumerate(world[1])]
    again = known + [fact for fact in known if randomness.random() < 0.3]
    randomness.shuffle(again)
    assert derive(again) == derive(known)


@many
@given(worlds(max_workloads=1, ties=True))
def test_nothing_follows_from_facts_that_lost(world: tuple[str, list[Fact]]) -> None:
    known = [known_of(number, fact) for number, fact in enumerate(world[1])]
    lost = [one.fact for one in superseded(known) if one.of is None]
    assert derive([fact for fact in known if fact not in lost]) == derive(known)


@many
@given(worlds(max_workloads=1, ties=True))
def test_what_follows_fact_by_fact_is_what_follows_from_all_so_far(world: tuple[str, list[Fact]]) -> None:
    known = [known_of(number, fact) for number, fact in enumerate(world[1])]
    unfolding = Unfolding()
    for count, fact in enumerate(known, 1):
        unfolding.add(fact)
        assert unfolding.history() == derive(known[:count])


@many
@given(worlds(max_workloads=1, ties=True), st.randoms(use_true_random=False))
def test_which_of_two_contradictory_facts_counts_does_not_depend_on_the_keys_of_users(
    world: tuple[str, list[Fact]], randomness: random.Random
) -> None:
    # A digest that covers a name is keyed at random in each ledger; the same facts must still win.
    known = [known_of(number, fact) for number, fact in enumerate(world[1])]
    elsewhere = [
        Known(
            k.data, k.at_s, k.source, randomness.randbytes(32) if getattr(k.data, "user", None) else k.digest
        )
        for k in known
    ]
    assert runs_and_waits(derive(elsewhere)) == runs_and_waits(derive(known))


@many
@given(worlds(max_workloads=1))
def test_segments_of_a_run_follow_each_other_and_differ(world: tuple[str, list[Fact]]) -> None:
    history = derived(world[1])
    for before, after in zip(history.segments, history.segments[1:], strict=False):
        if before.run != after.run:
            continue
        assert before.to_s is not None
        assert before.to_s <= after.from_s
        same = all(
            getattr(before, of) == getattr(after, of) for of in ("account", "gpus_milli", "klass", "hosts")
        )
        assert not (same and before.to_s == after.from_s)
    assert all(s.gpus_milli > 0 and (s.to_s is None or s.to_s > s.from_s) for s in history.segments)


@many
@given(worlds(max_workloads=1), st.sampled_from(["UTC", "Asia/Kathmandu", "America/Los_Angeles"]))
def test_slices_sum_to_their_segments_exactly_in_both_commodities(
    world: tuple[str, list[Fact]], zone: str
) -> None:
    history = derived(world[1])
    whole = sum(s.gpus_milli * (s.to_s - s.from_s) for s in history.segments if s.to_s is not None)
    want = desired(history, Calendar(zone))
    assert sum(amount for key, amount in want.items() if key.commodity == PHYSICAL) == whole
    assert sum(amount for key, amount in want.items() if key.commodity == WEIGHTED) == whole * 1000


@many
@given(worlds(max_workloads=1), worlds(max_workloads=1), st.sampled_from(["UTC", "Europe/Berlin"]))
def test_the_difference_turns_what_stands_into_what_must_stand(
    before: tuple[str, list[Fact]], after: tuple[str, list[Fact]], zone: str
) -> None:
    calendar = Calendar(zone)
    have, want = (desired(derived(world[1]), calendar) for world in (before, after))
    posted = {key: Posted(amount, 7) for key, amount in have.items()}
    postings = difference(want, posted, workload="w0", reason="late", booking=Booking(calendar))
    stands = dict(have)
    for posting in postings:
        assert posting.amount > 0
        forward = posting.credit.pot in ("spent", "unallocated")
        pot = posting.credit if forward else posting.debit
        source = posting.debit.pot if forward else posting.credit.pot
        key = Key(posting.code, posting.commodity, pot.account, source, posting.run or "", posting.day)
        assert key in want.keys() | have.keys()
        assert pot.period == calendar.period_of(posting.day)
        stands[key] = stands.get(key, 0) + (posting.amount if forward else -posting.amount)
        assert (posting.reverses_seq is None) == forward
    assert {key: amount for key, amount in stands.items() if amount} == want
    standing = {k: Posted(a, 7) for k, a in want.items()}
    assert difference(want, standing, workload="w0", reason="", booking=Booking(calendar)) == []


@pytest.mark.timeout(3600)
def test_random_intervals_are_cut_as_a_walk_through_them_says(test_form: str) -> None:
    randomness = random.Random(20171031)
    wrong = []
    for number in range(INTERVALS[test_form]):
        zone, base_s = randomness.choice(MOMENTS)
        start_s = base_s + randomness.randrange(2 * 86_400)
        end_s = start_s + randomness.choice([randomness.randrange(7_200), randomness.randrange(2 * 86_400)])
        facts = interval(start_s, end_s, randomness.choice([1000, 142, 64_000]))
        if amounts(derived(facts), zone) != oracle.net(facts, zone):
            wrong.append((number, zone, start_s, end_s))
    assert wrong == []


@many
@given(st.sampled_from(MOMENTS), st.lists(st.integers(0, 3 * 86_400), min_size=3, max_size=8, unique=True))
def test_splitting_a_run_never_moves_an_amount(moment: tuple[str, int], offsets: list[int]) -> None:
    zone, base_s = moment
    edges = sorted(base_s + offset for offset in offsets)
    whole = interval(edges[0], edges[-1], 3000)
    resized = [Fact("resized", at_s, "test/stream", "w0", "r0", {"gpus_milli": 3000}) for at_s in edges[1:-1]]
    requeued = [
        fact._replace(run=f"r{number}")
        for number, (start_s, end_s) in enumerate(itertools.pairwise(edges))
        for fact in interval(start_s, end_s, 3000)
    ]
    want = per_day(amounts(derived(whole), zone))
    assert per_day(amounts(derived([*whole, *resized]), zone)) == want
    assert per_day(amounts(derived(requeued), zone)) == want


def interval(start_s: int, end_s: int, gpus_milli: int) -> list[Fact]:
    started = {"gpus_milli": gpus_milli, "account": "org/a"}
    return [
        Fact("started", start_s, "test/stream", "w0", "r0", started),
        Fact("ended", end_s, "test/stream", "w0", "r0", {"reason": "done"}),
    ]


def derived(facts: Sequence[Fact]) -> History:
    return derive([known_of(number, fact) for number, fact in enumerate(facts)])


def amounts(history: History, zone: str) -> dict[Net, int]:
    return {
        Net(key.code, key.account, "w0", key.run, key.day.isoformat()): amount
        for key, amount in desired(history, Calendar(zone)).items()
        if key.commodity == PHYSICAL
    }


def per_day(net: dict[Net, int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for key, amount in net.items():
        sums[key.day] = sums.get(key.day, 0) + amount
    return sums


def joined(spans: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for from_s, to_s in spans:
        if found and found[-1][1] == from_s:
            found[-1] = (found[-1][0], to_s)
        else:
            found.append((from_s, to_s))
    return found


def runs_and_waits(history: History) -> object:
    """Return everything but who, which is a token that no amount depends on."""
    return sorted(
        (s.run, s.from_s, s.to_s or -1, s.account, s.klass, s.gpus_milli) for s in history.segments
    ), history.waits
