from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.sources.kubernetes import sharing
from gpuledger.sources.kubernetes.sharing import Change, Given, Sharer, Shares

CLAIM = Given("ns/c/1", 1000)


def pod(own: str, since_s: int, plain_milli: int = 0) -> Sharer:
    return Sharer(own, f"w-{own}", "1", ["node-1"], since_s, plain_milli)


def test_who_starts_first_holds_the_claim_and_the_next_takes_over() -> None:
    shares = Shares()
    assert shares.join(pod("x", 10), [CLAIM], None) == [(10, 1000)]
    assert shares.join(pod("y", 20, 2000), [CLAIM], None) == [(20, 2000)]
    assert shares.join(pod("z", 15), [CLAIM], None) == [(15, 0)]
    assert (shares.is_free(CLAIM.key, "x"), shares.is_free(CLAIM.key, "y")) == (True, False)
    ((heir, change),) = shares.leave("x", 30)
    assert (heir.own, heir.run, change) == ("z", "1", Change(30, 1000))
    ((heir, change),) = shares.leave("z", 40)
    assert (heir.own, change) == ("y", Change(40, 3000))
    assert shares.leave("y", 50) == []
    assert shares.join(pod("w", 45), [CLAIM], None) == [(45, 0), (50, 1000)], "what y had is not given again"


def test_one_that_is_heard_of_late_gets_the_time_that_nobody_has() -> None:
    shares = Shares()
    shares.join(pod("x", 100), [CLAIM], None)
    assert shares.join(pod("a", 50), [CLAIM], 60) == [(50, 1000)], "it is over already"
    shares.leave("a", 60)
    assert shares.join(pod("b", 40), [CLAIM], None) == [(40, 1000), (50, 0), (60, 1000), (100, 0)]
    ((heir, change),) = shares.leave("x", 110)
    assert (heir.own, change) == ("b", Change(110, 1000))


def test_claims_are_taken_over_together_and_each_by_itself() -> None:
    shares, other = Shares(), Given("ns/d/2", 250)
    shares.join(pod("x", 10), [CLAIM, other], None)
    assert shares.join(pod("y", 20), [CLAIM, other], None) == [(20, 0)]
    assert shares.join(pod("z", 15), [other], None) == [(15, 0)]
    assert [(heir.own, change) for heir, change in shares.leave("x", 30)] == [
        ("y", Change(30, 1000)),
        ("z", Change(30, 250)),
    ]
    assert [(heir.own, change) for heir, change in shares.leave("z", 35)] == [("y", Change(35, 1250))]


def test_nobody_takes_over_what_ended_nobody_knows_when() -> None:
    shares = Shares()
    shares.join(pod("x", 10), [CLAIM], None)
    shares.join(pod("y", 20), [CLAIM], None)
    assert shares.leave("x", None) == []
    assert shares.leave("nobody", 30) == []
    assert shares.join(pod("z", 40), [CLAIM], None) == [(40, 1000)]


def test_after_a_restart_the_same_is_told_of_those_who_were_told_of() -> None:
    shares = Shares()
    shares.join(pod("x", 10), [CLAIM], None)
    shares.join(pod("y", 20), [CLAIM], None)
    shares.leave("x", 30)
    again = Shares()
    again.kept = shares.kept
    assert again.join(pod("y", 20), [CLAIM], None) == [(20, 0)]
    assert again.join(pod("z", 25), [CLAIM], None) == [(25, 0)]
    assert [(heir.own, change) for heir, change in again.leave("y", 40)] == [("z", Change(40, 1000))]


def test_a_state_that_is_repeated_when_its_pod_is_over_tells_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = Shares()
    shares.join(pod("x", 10), [CLAIM], None)
    shares.join(pod("y", 20), [CLAIM], None)
    shares.leave("x", 30)
    assert shares.join(pod("x", 10), [CLAIM], 30) == [(10, 1000)]
    assert shares.leave("x", 30) == []
    monkeypatch.setattr(sharing, "PAST_MAX", 1)
    shares.leave("y", 40)
    assert shares.join(pod("x", 10), [CLAIM], 30) == [(10, 0)], "it is remembered for a while"


def test_a_claim_that_is_gone_is_forgotten_with_its_last_pod() -> None:
    shares = Shares()
    shares.join(pod("x", 10), [CLAIM], None)
    shares.join(pod("y", 20), [CLAIM], None)
    shares.gone(CLAIM.key)
    shares.gone("ns/never-seen/0")
    assert [heir.own for heir, _ in shares.leave("x", 30)] == ["y"], "its pods may be heard of after it"
    shares.leave("y", 40)
    assert (shares.kept.claims, shares.kept.sharers) == ({}, {})
    shares.join(pod("z", 50), [CLAIM], None)
    shares.leave("z", 60)
    assert list(shares.kept.claims) == [CLAIM.key], "it is there still"
    shares.gone(CLAIM.key)
    assert shares.kept.claims == {}


def _heard(pods: dict[str, tuple[int, int]], listed_s: int, order: Random) -> Iterator[tuple[str, bool]]:
    """Yield the pods as a list at a moment has them, in any order, then each start and end as it happens."""
    first = [own for own, (since_s, _) in pods.items() if since_s <= listed_s]
    order.shuffle(first)
    for own in first:
        yield own, pods[own][1] <= listed_s
    later = [(at, order.random(), own, at == pods[own][1]) for own in pods for at in pods[own]]
    for _, _, own, is_end in sorted(one for one in later if one[0] > listed_s):
        yield own, is_end


@given(
    spans=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=7),
    listed_s=st.integers(0, 60),
    order=st.randoms(use_true_random=False),
)
def test_each_second_that_any_pod_runs_has_one_owner(
    spans: list[tuple[int, int]], listed_s: int, order: Random
) -> None:
    """Counted second by second: in whichever order pods are heard of, one that runs holds the claim."""
    pods = {f"p{at}": (since, since + length) for at, (since, length) in enumerate(spans)}
    shares, changes = Shares(), {own: list[Change]() for own in pods}
    for own, is_over in _heard(pods, listed_s, order):
        since_s, end_s = pods[own]
        if not changes[own]:
            changes[own] += shares.join(pod(own, since_s), [CLAIM], end_s if is_over else None)
        if is_over:
            for heir, change in shares.leave(own, end_s):
                changes[heir.own].append(change)
    assert shares.kept.sharers == {}
    for second in range(61):
        held = 0
        for own, (since_s, end_s) in pods.items():
            if since_s <= second < end_s:
                held += [gpus for at_s, gpus in sorted(changes[own], key=lambda c: c.at_s) if at_s <= second][
                    -1
                ]
        assert held == (1000 if any(a <= second < b for a, b in pods.values()) else 0), second
