"""The program tree of books, in cases that can be worked out by hand."""

from fractions import Fraction

from gpuledger.simulator.books_forest import forest_of, inner_of

SHARES = {"org/a": 1, "org/b": 3, "org/b/x": 1, "org/b/y": 0}


def test_inner_accounts_are_those_above_others_listed_or_not() -> None:
    assert inner_of(SHARES) == {"org", "org/b"}


def test_each_leaf_has_its_part_and_whoever_has_a_share_of_0_on_the_way_is_not_funded() -> None:
    forest = forest_of(SHARES, inner_of(SHARES), frozenset())
    assert list(forest.shares.items()) == [
        ("org", 1),
        ("org/a", 1),
        ("org/b", 3),
        ("org/b/x", 1),
        ("org/b/y", 0),
    ]
    assert {path: part for path, part in forest.parts.items() if part} == {
        "org/a": Fraction(1, 4),
        "org/b/x": Fraction(3, 4),
    }
    assert forest.funded == {"org/a", "org/b/x"}


def test_own_work_of_an_inner_account_is_read_at_a_leaf_of_its_own() -> None:
    forest = forest_of({**SHARES, "org/b/~own": 1}, inner_of(SHARES), frozenset({"org/b"}))
    assert forest.parts["org/b/~own"] == Fraction(3, 8)
    assert "org/b" in forest.funded
