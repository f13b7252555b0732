"""What runs held of a host beyond what is installed there, second by second."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.ledger.claims import Claim
from gpuledger.reconcile.conflicts import conflicts


def test_two_jobs_on_the_same_gpus_overlap_while_both_hold_them() -> None:
    claimed = [Claim("n1", 8000, 0, 100), Claim("n1", 8000, 60, 130), Claim("n2", 4000, 0, 100)]
    assert conflicts(claimed, [Claim("n1", 8000, 0, 1000), Claim("n2", 8000, 0, 1000)]) == {"n1": 8000 * 40}


def test_jobs_that_follow_each_other_to_the_second_do_not_overlap() -> None:
    claimed = [Claim("n1", 8000, 0, 100), Claim("n1", 8000, 100, 130)]
    assert conflicts(claimed, [Claim("n1", 8000, 0, 1000)]) == {}


def test_where_nothing_is_known_to_be_installed_nobody_can_say() -> None:
    claimed = [Claim("n1", 8000, 0, 100), Claim("n1", 8000, 0, 100)]
    assert conflicts(claimed, []) == {}
    assert conflicts(claimed, [Claim("n1", 8000, 90, 200)]) == {"n1": 8000 * 10}


claims = st.lists(
    st.builds(
        lambda host, milli, from_s, length: Claim(host, milli, from_s, from_s + length),
        st.sampled_from(["a", "b"]),
        st.integers(1, 9),
        st.integers(0, 20),
        st.integers(0, 12),
    ),
    max_size=8,
)


@given(claims, claims)
def test_it_is_what_a_walk_second_by_second_finds(claimed: list[Claim], installed: list[Claim]) -> None:
    wanted: dict[str, int] = {}
    for host in ("a", "b"):
        for second in range(40):
            held, there = (
                sum(c.gpus_milli for c in kind if c.host == host and c.from_s <= second < c.to_s)
                for kind in (claimed, installed)
            )
            if there and held > there:
                wanted[host] = wanted.get(host, 0) + held - there
    assert conflicts(claimed, installed) == wanted
