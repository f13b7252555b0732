from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.simulator.portions import Entitlement, parts_of
from gpuledger.simulator.scenario import AccountSpec


def specs(**shares: int) -> list[AccountSpec]:
    return [AccountSpec(account=path.replace("_", "/"), share=share) for path, share in shares.items()]


def test_shares_multiply_down_the_tree() -> None:
    found = parts_of(specs(org_a=3, org_b=1, org_b_x=1, org_b_y=2))
    assert found == {"org/a": Fraction(3, 4), "org/b/x": Fraction(1, 12), "org/b/y": Fraction(1, 6)}


def test_siblings_without_shares_are_entitled_to_nothing() -> None:
    assert parts_of(specs(a=1, b=1, b_x=0)) == {"a": Fraction(1, 2), "b/x": Fraction(0)}


def test_own_work_of_an_inner_node_stands_under_it() -> None:
    found = parts_of([*specs(org=1, org_a=1), AccountSpec(account="org/~own", share=1)])
    assert found == {"org": Fraction(1, 2), "org/a": Fraction(1, 2)}


@given(st.integers(0, 10**9), st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_the_parts_sum_to_the_capacity_to_the_unit(capacity: int, shares: list[int]) -> None:
    parts = parts_of([AccountSpec(account=f"a{n}", share=share) for n, share in enumerate(shares)])
    entitled = Entitlement(parts).of(capacity)
    assert sum(entitled.values()) == (capacity if any(shares) else 0)
    assert all(abs(entitled[path] - part * capacity) < 1 for path, part in parts.items())


def test_what_nobody_is_entitled_to_goes_to_nobody() -> None:
    parts = parts_of(specs(a=1, b=1, b_x=0))
    assert Entitlement(parts).of(1001) == {"a": 501, "b/x": 0}
