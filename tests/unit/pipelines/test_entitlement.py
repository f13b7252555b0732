from fractions import Fraction

from gpuledger.kernel.portions import members
from gpuledger_pipelines.defs.owed.entitlement import (
    ShareInForce,
    Version,
    as_columns,
    versions,
)  # fmt: skip


def test_a_root_named_like_the_cluster_owns_it_alone() -> None:
    paths = ["openb/ls", "org/a", "philly/x"]
    assert members("philly", paths, ["philly", "openb"]) == ["philly/x"]


def test_other_roots_share_a_cluster_that_no_root_is_named_like() -> None:
    paths = ["lab/b", "openb/ls", "org/a", "unmapped/x"]  # what nobody owns is entitled to nothing
    assert members("h100", paths, ["h100", "openb"]) == ["lab/b", "org/a"]


def test_versions_are_cut_where_a_share_of_the_tree_changes() -> None:
    shares = [
        ShareInForce("c/a", 3, 0, 50),
        ShareInForce("c/a", 1, 50, None),
        ShareInForce("elsewhere", 9, 20, None),
        ShareInForce("c/b", 1, 100, None),  # at the end: no part of the interval
    ]
    assert versions(["c/a", "c/b"], shares, 10, 100) == [
        Version(10, 50, {"c/a": Fraction(3, 4), "c/b": Fraction(1, 4)}),
        Version(50, 100, {"c/a": Fraction(1, 2), "c/b": Fraction(1, 2)}),
    ]


def test_before_its_first_share_an_account_has_share_one() -> None:
    (before, after) = versions(["c/a", "c/b"], [ShareInForce("c/a", 3, 50, None)], 0, 100)
    assert (before.portions["c/a"], after.portions["c/a"]) == (Fraction(1, 2), Fraction(3, 4))


def test_columns_have_one_denominator_per_version_and_no_empty_parts() -> None:
    found = [Version(0, 5, {"a": Fraction(1, 4), "b": Fraction(2, 3), "z": Fraction(0)})]
    assert as_columns(found) == {
        "versions": [0],
        "starts": [0],
        "ends": [5],
        "portion_versions": [0, 0],
        "accounts": ["a", "b"],
        "numerators": [3, 8],
        "denominators": [12, 12],
    }
