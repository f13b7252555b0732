"""Samples shared out among workers in any way give the buckets that one worker gives, each sample counted once."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.ingest.telemetry import BUCKET_S, _sum_up

Sums = dict[tuple[int, str, str, str, str], list[int]]

percents = st.none() | st.integers(0, 1_000_000).map(lambda ppm: Decimal(ppm) / 10_000)
gpus = st.builds(
    GpuSample,
    uuid=st.sampled_from(["GPU-1", "GPU-2", "GPU-2/7"]),
    run=st.sampled_from([None, "w1/1", "w2/1", "a/b/2"]),
    gpu_util=percents,
    sm_active=percents,
    gpus_milli=st.sampled_from([None, 142, 428]),
)
samples = st.tuples(
    st.integers(0, 5000),
    st.builds(
        Sampled,
        cluster=st.just("c"),
        host=st.sampled_from(["n1", "n2"]),
        interval_s=st.integers(1, 2000),
        gpus=st.lists(gpus, max_size=4),
    ),
)


def summed(told: list[tuple[int, Sampled]]) -> Sums:
    sums: Sums = {}
    for at_s, fact in told:
        _sum_up(fact, at_s, sums)
    return sums


def added(first: Sums, second: Sums) -> Sums:
    """What the database makes of the sums of two workers."""
    return {
        key: [a + b for a, b in zip(first.get(key, [0, 0]), second.get(key, [0, 0]), strict=True)]
        for key in first.keys() | second.keys()
    }


@given(st.lists(st.tuples(samples, st.booleans()), max_size=30))
def test_any_split_between_two_workers_gives_the_same_buckets(
    told: list[tuple[tuple[int, Sampled], bool]],
) -> None:
    mine = summed([sample for sample, is_mine in told if is_mine])
    theirs = summed([sample for sample, is_mine in told if not is_mine])
    whole = summed([sample for sample, _ in told])
    assert added(mine, theirs) == whole == summed([sample for sample, _ in reversed(told)])


@given(samples)
def test_buckets_hold_the_time_that_was_sampled_and_never_more_than_was_there(
    told: tuple[int, Sampled],
) -> None:
    _, fact = told
    sums = summed([told])
    expected = sum(
        (gpu.gpus_milli or 1000) * fact.interval_s
        for gpu in fact.gpus
        for value in (gpu.gpu_util, gpu.sm_active)
        if value is not None
    )
    assert sum(sampled for sampled, _ in sums.values()) == expected
    for (bucket_s, *_), (sampled, used) in sums.items():
        assert bucket_s % BUCKET_S == 0
        assert 0 <= used <= sampled * 1_000_000
