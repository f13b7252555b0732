"""Division by credits: the sequences of the reference allocator, and the laws on random quanta."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.forests import account

from gpuledger.policy.credits import Sibling, divide_by_credits, share_out
from gpuledger.policy.tree import Capacity, build_tree

Demands = list[tuple[int, ...]]


def play(
    supply: int, demands: Demands, *, shared: int = 500, start: int = 100, shares: tuple[int, ...] = (1, 1, 1)
) -> tuple[Demands, list[Fraction]]:
    balances = [Fraction(start)] * len(shares)
    given_: Demands = []
    for wants in demands:
        siblings = [
            Sibling(name=str(n), share=share, want=want, credits=has)
            for n, (share, want, has) in enumerate(zip(shares, wants, balances, strict=True))
        ]
        found = share_out(siblings, supply, shared_permille=shared)
        given_.append(tuple(found[s.name].slices for s in siblings))
        balances = [has + found[s.name].gain for has, s in zip(balances, siblings, strict=True)]
    return given_, balances


def test_what_was_lent_comes_back() -> None:
    """6 slices, alpha 0.5: every total is 5, and every balance 101."""
    given_, balances = play(6, [(4, 1, 1), (0, 3, 0), (2, 2, 5)])
    assert given_ == [(4, 1, 1), (0, 3, 0), (1, 1, 4)]
    assert balances == [101, 101, 101]


ALONE_FIRST: Demands = [(6, 0, 0), (6, 0, 0), (6, 6, 6), (6, 6, 6), (0, 6, 6), (6, 6, 6)]


def test_who_was_alone_first_repays() -> None:
    given_, _ = play(6, ALONE_FIRST)
    assert [list(row) for row in zip(*given_, strict=True)] == [
        [6, 6, 1, 1, 0, 1],
        [0, 0, 3, 2, 3, 3],
        [0, 0, 2, 3, 3, 2],
    ]


def test_without_a_pool_nothing_is_repaid_in_contention() -> None:
    given_, _ = play(6, ALONE_FIRST, shared=0)
    assert [sum(row) for row in zip(*given_, strict=True)] == [18, 9, 9]


def test_repayment_is_bounded_by_the_pool() -> None:
    """12 slices, alpha 0.5: a debtor keeps half of its share while it repays."""
    given_, _ = play(12, [(12, 12, 12), (12, 0, 0), (12, 0, 0), *[(12, 12, 12)] * 4], start=1000)
    assert [list(row) for row in zip(*given_, strict=True)] == [
        [4, 12, 12, 2, 2, 2, 2],
        [4, 0, 0, 5, 5, 5, 5],
        [4, 0, 0, 5, 5, 5, 5],
    ]


def test_unequal_shares_in_steady_contention_get_their_shares_and_keep_their_credits() -> None:
    given_, balances = play(12, [(12, 12, 12)] * 8, shares=(3, 2, 1))
    assert [sum(row) for row in zip(*given_, strict=True)] == [48, 32, 16]
    assert balances == [100, 100, 100]


def test_a_share_of_0_gets_nothing() -> None:
    given_, balances = play(6, [(6, 6, 6)], shares=(1, 0, 1))
    assert given_ == [(3, 0, 3)]
    assert balances[1] == 100
    assert play(6, [(1, 1, 1)], shares=(0, 0, 0))[0] == [(0, 0, 0)]


def one_by_one(siblings: list[Sibling], supply: int, shared: int) -> tuple[Counter[str], dict[str, Fraction]]:
    """The algorithm as the paper tells it, slice by slice; equal shares."""
    n = len(siblings)
    fair = supply // n
    guaranteed = fair * (1000 - shared) // 1000
    pool = supply - guaranteed * n
    balances = {s.name: s.credits + Fraction(pool, n) for s in siblings}
    got = Counter({s.name: min(s.want, guaranteed) for s in siblings})
    donated = {s.name: guaranteed - got[s.name] for s in siblings}
    while True:
        borrowers = [s for s in siblings if got[s.name] < s.want and s.want > guaranteed]
        donors = [s.name for s in siblings if donated[s.name]]
        if not borrowers or not (donors or pool):
            return got, balances
        best = max(borrowers, key=lambda s: (balances[s.name], -int(s.name))).name
        if donors:
            donor = min(donors, key=lambda name: (balances[name], int(name)))
            donated[donor] -= 1
            balances[donor] += 1
        else:
            pool -= 1
        got[best] += 1
        balances[best] -= 1


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.tuples(st.integers(0, 12), st.fractions(-6, 6, max_denominator=3)), min_size=n, max_size=n
        )
    ),
    st.integers(0, 4),
    st.sampled_from([0, 500, 1000]),
)
def test_equal_siblings_get_what_slice_by_slice_gives(
    wants: list[tuple[int, Fraction]], fair: int, shared: int
) -> None:
    siblings = [Sibling(name=str(n), share=1, want=want, credits=has) for n, (want, has) in enumerate(wants)]
    supply = 2 * fair * len(siblings)
    found = share_out(siblings, supply, shared_permille=shared)
    got, balances = one_by_one(siblings, supply, shared)
    assert {name: outcome.slices for name, outcome in found.items()} == dict(got)
    assert {s.name: s.credits + found[s.name].gain for s in siblings} == balances


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 40), st.fractions(-50, 50, max_denominator=7)), max_size=7
    ),
    st.integers(0, 60),
    st.integers(0, 1000),
    st.randoms(use_true_random=False),
)
def test_laws_of_one_quantum(
    told: list[tuple[int, int, Fraction]], supply: int, shared: int, order: st.DataObject
) -> None:
    """Never above demand or supply, work-conserving, guaranteed, whatever the order they are listed in."""
    siblings = [
        Sibling(name=str(n), share=share, want=want, credits=has) for n, (share, want, has) in enumerate(told)
    ]
    found = share_out(siblings, supply, shared_permille=shared)
    wanting = sum(s.want for s in siblings if s.share)
    assert sum(outcome.slices for outcome in found.values()) == min(supply, wanting)
    whole = sum(s.share for s in siblings)
    for s in siblings:
        assert 0 <= found[s.name].slices <= (s.want if s.share else 0)
        if s.share:
            kept = Fraction(supply * (1000 - shared) // 1000 * s.share, whole)
            assert found[s.name].slices >= min(s.want, int(kept))
        else:
            assert found[s.name].gain == 0
    shuffled = list(siblings)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert share_out(shuffled, supply, shared_permille=shared) == found


@given(st.lists(st.integers(0, 12), min_size=2, max_size=12), st.integers(0, 11), st.data())
def test_asking_for_more_than_one_needs_gains_nothing_over_time(
    demands: list[int], lie_at: int, data: st.DataObject
) -> None:
    """Online strategy-proofness, as a scan: who overstates one quantum's demand gets no more useful slices by then."""
    others = data.draw(
        st.lists(
            st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=len(demands), max_size=len(demands)
        )
    )
    lie_at %= len(demands)
    lie = data.draw(st.integers(demands[lie_at], 12))
    honest = [(want, *rest) for want, rest in zip(demands, others, strict=True)]
    lied = [(lie if n == lie_at else want, *rest) for n, (want, *rest) in enumerate(honest)]
    told, _ = play(6, honest[: lie_at + 1])
    false, _ = play(6, lied[: lie_at + 1])
    assert min(false[lie_at][0], demands[lie_at]) <= told[lie_at][0]


@pytest.mark.parametrize("supply", [10**6, 16_000_000])
def test_a_large_supply_takes_no_longer(supply: int) -> None:
    siblings = [
        Sibling(name=f"{n:03}", share=1 + n % 3, want=supply, credits=Fraction(n)) for n in range(200)
    ]
    assert (
        sum(outcome.slices for outcome in share_out(siblings, supply, shared_permille=500).values()) == supply
    )


def test_a_newcomer_has_the_mean_of_its_siblings_and_flows_are_by_the_second() -> None:
    tree = build_tree(
        [account(name, demand=6) for name in "abc"],
        Capacity(healthy_milli=6000, window_gpu_ms=0, ahead_gpu_ms=0),
    )
    issued, credit = divide_by_credits(
        tree, 6000, {"a": -6_300_000, "b": 900_000}, shared_permille=500, quantum_s=900
    )
    assert [credit[name].gpu_ms for name in "abc"] == [-6_300_000, 900_000, -2_700_000]
    assert issued.issued_milli == {"a": 1000, "b": 4000, "c": 1000}
    assert [credit[name].flow_milli for name in "abc"] == [1000, -2000, 1000]
    assert credit["a"].after(900) == -6_300_000 + 900_000
