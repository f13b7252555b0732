"""A caller gets the burst at once and the rate in the long run, and nobody else's."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.api.rates import Limiter, Rate, place_of


class Hands:
    """A clock that is moved by hand."""

    at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


def test_a_burst_is_answered_at_once_and_then_one_for_each_step() -> None:
    clock = Hands()
    limiter = Limiter(Rate(per_s=10, burst=3), clock)
    assert [limiter.take("a").left for _ in range(3)] == [2, 1, 0]
    refused = limiter.take("a")
    assert (refused.allowed, refused.left) == (False, 0)
    assert refused.wait_s == pytest.approx(0.1)
    assert limiter.take("b").allowed
    clock.at_s += refused.wait_s
    assert limiter.take("a").allowed
    assert not limiter.take("a").allowed


@given(
    st.integers(1, 50),
    st.integers(1, 20),
    st.lists(st.integers(0, 400), max_size=120).map(sorted),
)
def test_no_window_holds_more_than_its_burst_and_rate(per_s: int, burst: int, at_ms: list[int]) -> None:
    clock = Hands()
    limiter = Limiter(Rate(per_s, burst), clock)
    answered = []
    for at in at_ms:
        clock.at_s = at / 1000
        if limiter.take("a").allowed:
            answered.append(at)
    for i, first in enumerate(answered):
        for j in range(i, len(answered)):
            window_s = (answered[j] - first) / 1000
            assert j - i + 1 <= burst + window_s * per_s + 1
    assert len(answered) >= min(len(at_ms), burst)


def test_who_waits_as_told_is_answered() -> None:
    clock = Hands()
    limiter = Limiter(Rate(per_s=3, burst=1), clock)
    for _ in range(20):
        assert limiter.take("a").allowed
        clock.at_s += limiter.take("a").wait_s


def test_callers_that_paid_are_forgotten() -> None:
    clock = Hands()
    limiter = Limiter(Rate(per_s=1000, burst=1), clock)
    for n in range(200_000):
        clock.at_s += 0.001
        limiter.take(f"address {n}")
    assert sum(map(len, limiter._shelves)) <= 70_000


def test_threads_get_no_more_together_than_one_alone() -> None:
    limiter = Limiter(Rate(per_s=1, burst=100), Hands())
    allowed = []

    def ask() -> None:
        allowed.extend(limiter.take("a").allowed for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(allowed) == 100


def test_the_headers_tell_the_policy_and_what_is_left() -> None:
    limiter = Limiter(Rate(per_s=10, burst=20), Hands())
    assert limiter.headers(limiter.take("a")) == {
        "RateLimit-Policy": '"caller";q=20;w=2', "RateLimit": '"caller";r=19;t=0'
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        (None, "None"),
    ],
)
def test_all_addresses_of_a_network_are_one_stranger(host: str | None, place: str) -> None:
    assert place_of(host) == place
