from fractions import Fraction

from gpuledger.kernel.portions import portions


def test_a_part_is_the_product_of_shares_down_the_path() -> None:
    found = portions(["c/a/x", "c/a/y", "c/b"], {"c/a": 3, "c/a/x": 1, "c/a/y": 2, "c/b": 1})
    assert found == {"c/a/x": Fraction(1, 4), "c/a/y": Fraction(1, 2), "c/b": Fraction(1, 4)}


def test_absent_shares_and_absent_inner_nodes_count_one() -> None:
    assert portions(["c/a/x", "c/b"], {"c/b": 3}) == {"c/a/x": Fraction(1, 4), "c/b": Fraction(3, 4)}


def test_siblings_whose_shares_are_all_zero_are_entitled_to_nothing() -> None:
    found = portions(["c/a/x", "c/a/y", "c/b"], {"c/a/x": 0, "c/a/y": 0})
    assert found == {"c/a/x": 0, "c/a/y": 0, "c/b": Fraction(1, 2)}


def test_what_the_virtual_child_is_entitled_to_stands_under_its_parent() -> None:
    found = portions(["c/a", "c/a/x", "c/a/~own"], {"c/a/x": 3, "c/a/~own": 1})
    assert found == {"c/a/x": Fraction(3, 4), "c/a": Fraction(1, 4)}
    assert portions(["c/a/x", "c/a/~own"], {}) == {"c/a/x": 1, "c/a": 0}


def test_no_accounts_no_parts() -> None:
    assert portions([], {}) == {}
