"""From sums of movements to lines: each movement once, under the name and the sign that people read."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.close import statement
from gpuledger.close.document import Late, Line, Physical, Weighted
from gpuledger.ledger.booked import Sum

P, BEFORE = "2026-11", "2026-10"


def booked(
    pot: str, code: str, amount: int, account: str = "org/a", *, of: str = P, physical: bool = False
) -> Sum:
    return Sum(account, of, "gpu_ms" if physical else "gpu_ms_weighted", pot, code, amount)


A_CLOSE = [
    booked("budget", "grant", 100),
    booked("budget", "rollover", 20),
    booked("budget", "transfer", -10),
    booked("budget", "credit", 5),
    booked("budget", "charge", -30),
    booked("budget", "hold", -20),
    booked("held", "hold", 20),
    booked("held", "charge", -15),
    booked("spent", "charge", 45),
    booked("spent", "credit", -5),
    booked("credited", "credit", 5),
    booked("budget", "expiry", -65),
    booked("expired", "expiry", 65),
    booked("expired", "rollover", -40),
    booked("unallocated", "unallocated", 7),
    booked("spent", "charge", 45, physical=True),
    booked("unallocated", "unallocated", 7, physical=True),
    booked("issue", "grant", -100, "~"),
]


def test_each_movement_is_told_once() -> None:
    assert statement.lines(A_CLOSE, ()) == [
        Line(
            account="org/a",
            weighted=Weighted(
                granted=100, rolled_in=20, transferred=-10, credited=5, charged=45, held=5, expired=65,
                rolled_out=40, unallocated=7, left=0,
            ),
            physical=Physical(allocated=45, unallocated=7),
        )
    ]  # fmt: skip


def test_a_debt_is_below_zero_on_its_way_in_and_out() -> None:
    (line,) = statement.lines([booked("budget", "rollover", -8), booked("expired", "rollover", 9)], ())
    assert (line.weighted.rolled_in, line.weighted.rolled_out) == (-8, -9)


def test_accounts_are_sorted_and_an_inner_one_is_its_own_child() -> None:
    told = statement.lines(
        [booked("budget", "grant", 1, name) for name in ("org/b", "org", "org/a")], {"org"}
    )
    assert [line.account for line in told] == ["org/a", "org/b", "org/~own"]


def test_what_belongs_to_an_earlier_period_is_told_apart_too() -> None:
    sums = [
        booked("spent", "charge", 10),
        booked("spent", "charge", 3, of=BEFORE),
        booked("budget", "charge", -13),
    ]
    assert statement.lines(sums, ())[0].weighted.charged == 13
    assert statement.late(sums, (), P) == [
        Late(account="org/a", period=BEFORE, weighted=Weighted(charged=3), physical=Physical())
    ]
    assert statement.late(A_CLOSE, (), P) == []


@given(
    st.lists(
        st.builds(
            booked,
            st.sampled_from(["budget", "spent", "expired", "held", "credited"]),
            st.sampled_from(["grant", "charge", "expiry", "rollover", "hold"]),
            st.integers(-(2**60), 2**60),
            st.sampled_from(["org/a", "org/b", "~"]),
            of=st.sampled_from([P, BEFORE]),
            physical=st.booleans(),
        )
    )
)
def test_totals_are_the_sum_and_the_order_of_sums_is_nothing(sums: list[Sum]) -> None:
    told = statement.lines(sums, ())
    assert told == statement.lines(sums[::-1], ())
    found = statement.totals(told)
    for name in Weighted.__struct_fields__:
        assert getattr(found.weighted, name) == sum(getattr(line.weighted, name) for line in told)
    assert found.weighted.left == sum(
        each.amount for each in sums
        if each.pot == "budget" and each.account != "~" and each.commodity == "gpu_ms_weighted"
    )  # fmt: skip
    assert found.accounts == len(told)
