"""What new shares change: exact parts, as a tree walked by hand gives them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.proposal_effects import changed_parts

NAMES = ["org/a", "org/b/x", "org/b/y", "org/c", "lab", "lab2/z"]
NODES = ["org", "org/a", "org/b", "org/b/x", "org/b/y", "org/c", "lab", "lab2", "lab2/z"]

SHARES = st.dictionaries(st.sampled_from(NODES), st.integers(0, 5))


def by_hand(paths: list[str], shares: dict[str, int]) -> dict[str, Fraction]:
    """Return each leaf's part: the product of its ancestors' shares over those of their siblings."""
    nodes = {"/".join(path.split("/")[: n + 1]) for path in paths for n in range(len(path.split("/")))}
    found = {}
    for leaf in paths:
        part, words = Fraction(1), leaf.split("/")
        for depth in range(len(words)):
            above = words[:depth]
            siblings = [n for n in nodes if n.split("/")[:-1] == above]
            whole = sum(shares.get(n, 1) for n in siblings)
            own = shares.get("/".join(words[: depth + 1]), 1)
            part *= Fraction(own, whole) if whole else 0
        found[leaf] = part
    return found


@given(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), SHARES, SHARES)
def test_the_leaves_whose_part_changes_and_nobody_else(
    paths: list[str], before: dict[str, int], changed: dict[str, int]
) -> None:
    after = before | changed
    old, new = by_hand(paths, before), by_hand(paths, after)
    found = list(changed_parts(paths, before, after))
    assert found == [(leaf, old[leaf], new[leaf]) for leaf in sorted(paths) if old[leaf] != new[leaf]]
    lost = sum((was - becomes for _, was, becomes in found), Fraction(0))
    assert lost == sum(old.values()) - sum(new.values())


def test_nothing_changes_where_nothing_is_set_anew() -> None:
    assert list(changed_parts(NAMES, {"org/a": 3}, {"org/a": 3})) == []
