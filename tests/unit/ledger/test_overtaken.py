"""What is posted back of adjustments: as much as makes no net negative, and no more."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.overtaken import posted_back

AMOUNT = st.integers(-9, 9)


@given(charged=AMOUNT, credited=AMOUNT, unallocated=AMOUNT)
def test_no_net_is_negative_no_credit_exceeds_the_charge_and_the_least_is_posted_back(
    charged: int, credited: int, unallocated: int
) -> None:
    """Against a search of everything near enough: the sums that may stand, nearest to those that were ordered."""
    standing = {"charge": charged, "credit": credited, "unallocated": unallocated}
    back = posted_back(standing)
    found = tuple(standing[code] + back.get(code, 0) for code in ("charge", "credit", "unallocated"))
    may_stand = [(c, k, u) for c in range(10) for k in range(c + 1) for u in range(10)]
    ordered = (charged, credited, unallocated)
    assert found == min(may_stand, key=lambda to: [abs(a - b) for a, b in zip(to, ordered, strict=True)])
    assert 0 not in back.values()
