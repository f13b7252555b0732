"""Whatever is known of a run: its estimated end is never nothing, never beyond its limit, and grows with evidence."""

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events.workload import Started
from gpuledger.ledger.facts import Known, winner
from gpuledger.ledger.lost_ends import SILENCE_S, Evidence, ended_event, lost_end, revised_end, runs_of

START = 1_000_000
SPAN_S = 50_000

instants = st.one_of(st.integers(START - 1000, START + SPAN_S), st.integers(START - 2, START + 2))
maybe = st.none() | instants
evidences = st.builds(
    Evidence,
    started_s=st.just(START),
    limit_s=st.none() | st.integers(START + 1, START + SPAN_S),
    taken_s=maybe,
    down_s=maybe,
    seen_s=maybe,
    missed_s=st.sampled_from([0, 300, SILENCE_S, 10 * SILENCE_S]),
)
asked = st.integers(START + 1, START + 2 * SPAN_S)


@given(evidences, asked)
def test_an_end_lies_after_the_start_and_neither_after_the_limit_nor_after_the_present(
    evidence: Evidence, as_of_s: int
) -> None:
    end_s = lost_end(evidence, as_of_s)
    assert end_s is None or START + 1 <= end_s <= as_of_s
    assert end_s is None or evidence.limit_s is None or end_s <= evidence.limit_s


@given(evidences, asked, asked)
def test_what_is_lost_stays_lost_at_the_same_instant_or_an_earlier_one_as_time_goes_by(
    evidence: Evidence, one_s: int, other_s: int
) -> None:
    before, after = (lost_end(evidence, as_of_s) for as_of_s in sorted((one_s, other_s)))
    assert before is None or (after is not None and after <= before)


@given(evidences, st.integers(START + 1, START + SPAN_S), st.integers(0, SPAN_S), asked)
def test_a_later_sign_of_life_never_makes_the_end_earlier(
    evidence: Evidence, seen_s: int, later_s: int, as_of_s: int
) -> None:
    """Either the run is not lost any more, or its end is as late as before. Without any sign the bound stood in."""
    before = lost_end(replace(evidence, seen_s=seen_s), as_of_s)
    after = lost_end(replace(evidence, seen_s=seen_s + later_s), as_of_s)
    assert before is None or after is None or after >= before


@given(
    evidences,
    st.sampled_from(["taken_s", "down_s", "limit_s"]),
    st.integers(START + 1, START + SPAN_S),
    asked,
)
def test_a_further_bound_never_makes_the_end_later(
    evidence: Evidence, bound: str, at_s: int, as_of_s: int
) -> None:
    evidence = replace(evidence, **{bound: None})
    before, after = lost_end(evidence, as_of_s), lost_end(replace(evidence, **{bound: at_s}), as_of_s)
    assert before is None or (after is not None and after <= before)


@given(evidences, st.integers(1, SPAN_S), st.integers(-5, SPAN_S), asked)
def test_a_revision_is_later_than_what_stood_and_keeps_the_limit(
    evidence: Evidence, lived_s: int, longer_s: int, as_of_s: int
) -> None:
    stands_s = START + lived_s
    evidence = replace(evidence, seen_s=stands_s + longer_s)
    end_s = revised_end(evidence, stands_s, as_of_s)
    if end_s is None:
        return
    assert stands_s < end_s <= as_of_s
    assert evidence.limit_s is None or end_s <= evidence.limit_s
    assert revised_end(evidence, end_s, as_of_s) is None


@given(st.lists(st.integers(START + 1, START + SPAN_S), min_size=1, max_size=5), st.randoms())
def test_of_several_estimates_the_latest_counts_in_whatever_order_they_came(
    ends: list[int], random: Random
) -> None:
    start = Started(cluster="c", workload="w", run="1", attempt=1, gpus_milli=1000, hosts=["h"])
    (run,) = runs_of([Known(start, START, "s", b"")])
    events = [ended_event("c", run, end_s) for end_s in ends]
    random.shuffle(events)
    counts = winner([Known(event.data, event.at_s, event.source, event.digest) for event in events])
    assert counts is not None
    assert counts.at_s == max(ends)
