"""Which waiting work hard accounts cannot pay for, asked many at once as one after the other."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import cast

from tests.unit.policy.forests import pending

from gpuledger.ledger.purse import Need, Purse
from gpuledger.policy.affording import _Asks, in_turn
from gpuledger.policy.state import PendingWorkload


class Fake:
    """A purse of so much for each account, and so much for all of them together."""

    def __init__(self, own: dict[str, int], shared: int) -> None:
        self.left = Counter(own)
        self.shared = shared
        self.asked = 0

    def shortfall_of(self, needs: Sequence[Need]) -> str | None:
        self.asked += 1
        account, amount = (
            needs[0].account,
            sum(need.gpus_milli * (need.span[1] - need.span[0]) for need in needs),
        )
        assert {need.account for need in needs} == {account}
        if amount > min(self.left[account], self.shared):
            return "too little"
        self.left[account] -= amount
        self.shared -= amount
        return None

    def put_back(self, *needs: Need) -> None:
        amount = sum(need.gpus_milli * (need.span[1] - need.span[0]) for need in needs)
        self.left[needs[0].account] += amount
        self.shared += amount


def short_of(purse: Fake, waiting: Sequence[PendingWorkload]) -> set[str]:
    asks = _Asks(cast("Purse", purse), 0)
    asks.about(waiting)
    return asks.short


def test_of_an_account_its_own_order_counts_and_of_several_the_oldest_first() -> None:
    waiting = [
        pending("b-old", "b", submitted_at_s=1),
        pending("a-low", "a", submitted_at_s=2),
        pending("a-high", "a", submitted_at_s=5, priority=1),
        pending("b-new", "b", submitted_at_s=4),
    ]
    assert [work.workload for work in in_turn(waiting)] == ["b-old", "b-new", "a-high", "a-low"]


def test_what_does_not_fit_leaves_its_room_to_what_comes_behind_it() -> None:
    waiting = [pending("large", "a", gpus=8), pending("small", "a", gpus=2), pending("again", "a", gpus=3)]
    assert short_of(Fake({"a": 4 * 3_600_000}, 10**12), waiting) == {"large", "again"}


def test_many_at_once_are_told_what_they_would_be_told_one_by_one() -> None:
    for seed in range(200):
        draw = random.Random(seed)
        waiting = [
            pending(f"w{n}", draw.choice("abc"), gpus=draw.choice([1, 1, 2, 5]), hours=draw.choice([1, 2]))
            for n in range(draw.randrange(1, 40))
        ]
        own, shared = {name: draw.randrange(60) * 3_600_000 for name in "abc"}, draw.randrange(90) * 3_600_000
        one_by_one = Fake(own, shared)
        expected = {
            work.workload
            for work in waiting
            if one_by_one.shortfall_of(
                [Need(work.account, work.gpus_milli, None, (0, work.minimum_runtime_s))]
            )
        }
        assert short_of(Fake(own, shared), waiting) == expected, seed


def test_of_a_long_queue_without_budget_few_are_asked_about() -> None:
    purse = Fake({}, 10**15)
    waiting = [pending(f"w{n:05}", "a", gpus=(1, 2, 8)[n % 3]) for n in range(20_000)]
    assert len(short_of(purse, waiting)) == len(waiting)
    assert purse.asked < 100
    purse = Fake({"a": 10**15}, 10**15)
    assert short_of(purse, waiting) == set()
    assert purse.asked == 1
