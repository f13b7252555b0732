"""Rows of ``gshare`` from accounts and a cycle: the terms are Slurm's, the order is the cycle's."""

from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.login import scripted

from gpuledger.client.answers import Allocation, UsageRow
from gpuledger.client.records import Account
from gpuledger.kernel.accounts import parent
from gpuledger.login import shares

ACCOUNTS = [
    msgspec.convert(scripted.account(path, share), Account)
    for path, share in (("org", 1), ("org/a", 3), ("org/b", 1), ("org/new", 2))
]
ALLOCATIONS = [
    msgspec.convert(scripted.allocation(*each), Allocation)
    for each in (
        ("org", 1_000_000, 100, 200, "0.500000"),
        ("org/a", 750_000, 90, 150, "0.600000"),
        ("org/b", 250_000, 10, 50, "0.200000"),
    )
]


def test_the_terms_are_those_of_slurms_manual() -> None:
    top, a, b = shares.of_accounts(ACCOUNTS, ALLOCATIONS)
    assert (top.norm_usage, top.effective_usage, top.fair_share) == (1, 1, None)
    assert (a.raw_shares, a.norm_shares, a.norm_usage, a.effective_usage) == (
        3,
        Fraction(3, 4),
        Fraction(9, 10),
        Fraction(9, 10),
    )
    assert (a.level, b.level) == (Fraction(5, 3), 5)
    assert (b.fair_share, a.fair_share) == (1, Fraction(1, 2))


def test_who_sees_a_part_of_the_tree_sees_it_from_its_top() -> None:
    allocations = [
        msgspec.convert(scripted.allocation(*each), Allocation)
        for each in (
            ("", 1_000_000, 9, 9, "1.000000"),
            ("org/a/x", 1, 3, 9, "0.3"),
            ("org/a/y", 1, 1, 9, "0.1"),
        )
    ]
    x, y = shares.of_accounts([], allocations)
    assert (x.fair_share, y.fair_share) == (Fraction(1, 2), 1)
    assert (x.norm_usage, y.effective_usage) == (Fraction(3, 4), Fraction(1, 4))


def test_people_stand_below_their_account_and_have_its_place() -> None:
    rows = shares.of_accounts(ACCOUNTS, ALLOCATIONS)
    used = {
        "org/a": [msgspec.convert(scripted.used(*each), UsageRow) for each in (("ines", 3), ("tomas", 1))]
    }
    named = [
        (row.account, row.user, row.effective_usage, row.fair_share)
        for row in shares.with_people(rows, used, ())
    ]
    assert named[1:4] == [
        ("org/a", "", Fraction(9, 10), Fraction(1, 2)),
        ("org/a", "ines", Fraction(3, 4), Fraction(1, 2)),
        ("org/a", "tomas", Fraction(1, 4), Fraction(1, 2)),
    ]
    alone = shares.with_people(rows, used, ("tomas",))
    assert [row.user for row in alone if row.user] == ["tomas"]


def test_who_used_nothing_of_what_it_is_entitled_to_is_infinitely_far_behind() -> None:
    allocations = [msgspec.convert(scripted.allocation("a", 1_000_000, 0, 5, "0.000000"), Allocation)]
    (row,) = shares.of_accounts([], allocations)
    assert row.as_json()["level_fs"] == "inf"
    assert row.as_json()["norm_usage"] is None


PATHS = ("a", "a/x", "a/y", "b", "b/x", "b/y", "b/z", "c")


@given(
    st.fixed_dictionaries(
        {path: st.tuples(st.integers(0, 2), st.none() | st.integers(0, 9)) for path in PATHS}
    )
)
def test_the_order_is_that_in_which_a_cycle_goes_through_the_tree(
    tree: dict[str, tuple[int, int | None]],
) -> None:
    allocations = [
        msgspec.convert(
            scripted.allocation(path, share, 1, 1, None if ratio is None else f"{ratio / 7:.6f}"), Allocation
        )
        for path, (share, ratio) in tree.items()
    ]
    rows = [row for row in shares.of_accounts([], allocations) if row.fair_share is not None]
    found = [row.account for row in sorted(rows, key=lambda row: row.fair_share or 0, reverse=True)]

    def turn(path: str) -> tuple[bool, bool, float, str]:
        share, ratio = tree[path]
        return share == 0, ratio is None, ratio or 0, path

    def chain(leaf: str) -> list[tuple[bool, bool, float, str]]:
        above = parent(leaf)
        return [*([turn(above)] if above else []), turn(leaf)]

    leaves = [path for path in PATHS if not any(other.startswith(path + "/") for other in PATHS)]
    assert found == sorted(leaves, key=chain)
    assert {row.fair_share for row in rows} == {Fraction(n, len(leaves)) for n in range(1, len(leaves) + 1)}


def test_every_column_says_what_it_means() -> None:
    assert list(shares.columns(for_programs=True)) == list(shares.MEANINGS)
    assert {*shares.USUAL.split(","), *shares.LONG.split(",")} == set(shares.MEANINGS)
