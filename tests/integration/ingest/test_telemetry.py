"""Samples become buckets: additive, each sample once, nothing impossible."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.database.engine import make_engine, writing
from gpuledger.events.envelope import Event, decode, make
from gpuledger.events.telemetry import GpuSample, Sampled, check
from gpuledger.ingest.telemetry import BUCKET_S, _sum_up, count
from gpuledger.kernel.errors import BadRecord

Buckets = dict[tuple[Any, ...], tuple[int, int]]


def sampled(at_s: int, interval_s: int, *gpus: GpuSample, id: str | None = None) -> Event:  # noqa: A002
    fact = Sampled(cluster="alpha", host="h1", interval_s=interval_s, gpus=list(gpus))
    return make(id=id or f"{at_s}/{interval_s}", source="dcgm/h1", at_s=at_s, data=fact)[0]


def gpu(
    percent: str | None = "50", *, uuid: str = "GPU-1", run: str | None = "w1/r1", **rungs: str
) -> GpuSample:
    values = {name: Decimal(value) for name, value in rungs.items()}
    return GpuSample(uuid=uuid, run=run, gpu_util=None if percent is None else Decimal(percent), **values)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


def counted(engine: sa.Engine, *events: Event) -> list[tuple[str, str]]:
    with writing(engine) as writer:
        return count(writer, "alpha", events)


def buckets(engine: sa.Engine) -> Buckets:
    query = (
        "SELECT extract(epoch FROM bucket_at)::bigint, gpu, workload, run, rung, sampled_gpu_ms, used_gpu_upms"
        " FROM telemetry.buckets"
    )
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(query).all()
    return {tuple(key): (sampled_ms, used) for *key, sampled_ms, used in rows}


def test_a_sample_counts_its_time_and_its_use_in_its_bucket(engine: sa.Engine) -> None:
    assert counted(engine, sampled(600, 60, gpu("12.5"))) == [("dcgm/h1", "600/60")]
    assert buckets(engine) == {(600, "GPU-1", "w1", "r1", "gpu_util"): (60_000, 60_000 * 125_000)}


def test_an_interval_over_a_bucket_edge_is_cut_there_to_the_second(engine: sa.Engine) -> None:
    counted(engine, sampled(290, 615, gpu("100")))
    assert {key[0]: value[0] for key, value in buckets(engine).items()} == {
        0: 10_000, 300: 300_000, 600: 300_000, 900: 5_000,
    }  # fmt: skip


def test_samples_of_one_bucket_add_up(engine: sa.Engine) -> None:
    counted(engine, sampled(0, 60, gpu("100")), sampled(60, 60, gpu("50")))
    counted(engine, sampled(120, 60, gpu("0")))
    assert buckets(engine) == {(0, "GPU-1", "w1", "r1", "gpu_util"): (180_000, 90_000 * 1_000_000)}


def test_a_sample_counts_once_however_often_it_arrives(engine: sa.Engine) -> None:
    event = sampled(0, 60, gpu())
    assert counted(engine, event, event) == [("dcgm/h1", "0/60")]
    before = buckets(engine)
    assert counted(engine, event) == []
    assert buckets(engine) == before


def test_each_rung_that_was_measured_has_a_bucket_and_no_other(engine: sa.Engine) -> None:
    counted(engine, sampled(0, 60, gpu("10", sm_active="5.5", tensor_active="0")))
    assert {key[4]: value for key, value in buckets(engine).items()} == {
        "gpu_util": (60_000, 6_000 * 1_000_000),
        "sm_active": (60_000, 60_000 * 55_000),
        "tensor_active": (60_000, 0),
    }


def test_what_was_not_measured_is_unknown_and_makes_no_bucket(engine: sa.Engine) -> None:
    assert counted(engine, sampled(0, 60, gpu(None))) == [("dcgm/h1", "0/60")]
    assert buckets(engine) == {}


def test_a_gpu_that_nobody_held_is_counted_to_nobody(engine: sa.Engine) -> None:
    counted(engine, sampled(0, 60, gpu(run=None), gpu(uuid="GPU-2", run="a/b/r7")))
    assert {key[1:4] for key in buckets(engine)} == {("GPU-1", "", ""), ("GPU-2", "a/b", "r7")}


def test_a_slice_counts_as_the_part_of_a_device_that_it_is(engine: sa.Engine) -> None:
    fact = Sampled(
        cluster="alpha",
        host="h1",
        interval_s=60,
        gpus=[GpuSample(uuid="GPU-1/7", gr_engine_active=Decimal(50), gpus_milli=142)],
    )
    counted(engine, make(id="slice", source="dcgm/alpha", at_s=0, data=fact)[0])
    assert list(buckets(engine).values()) == [(142 * 60, 142 * 60 * 500_000)]


def test_two_workers_share_a_stream_and_count_each_sample_once(engine: sa.Engine) -> None:
    events = [sampled(60 * n, 60, gpu(str(n)), gpu("1", uuid="GPU-2"), id=str(n)) for n in range(20)]

    def work(mine: list[Event]) -> int:
        return sum(len(counted(engine, *mine[start : start + 3])) for start in range(0, len(mine), 3))

    with ThreadPoolExecutor(2) as pool:
        fresh = list(pool.map(work, (events[:14], events[6:])))
    assert sum(fresh) == 20
    assert buckets(engine) == summed(*events)


def test_a_transaction_that_fails_counts_nothing(engine: sa.Engine) -> None:
    event = sampled(0, 60, gpu())

    def crash() -> None:
        with writing(engine) as writer:
            count(writer, "alpha", [event])
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        crash()
    assert buckets(engine) == {}
    assert counted(engine, event) == [("dcgm/h1", "0/60")]


@given(
    st.integers(0, 10_000), st.lists(st.integers(1, 2_000), min_size=1, max_size=6), st.integers(0, 1_000_000)
)
def test_splitting_an_interval_into_samples_changes_no_bucket(
    start_s: int, lengths: list[int], ppm: int
) -> None:
    sample = gpu(str(Decimal(ppm) / 10_000))
    edges = [start_s]
    for length in lengths:
        edges.append(edges[-1] + length)
    split = [sampled(a, b - a, sample) for a, b in itertools.pairwise(edges)]
    whole = summed(sampled(start_s, edges[-1] - start_s, sample))
    assert summed(*split) == whole
    assert sum(value[0] for value in whole.values()) == 1000 * (edges[-1] - start_s)
    assert all(key[0] % BUCKET_S == 0 and value[0] <= 1000 * BUCKET_S for key, value in whole.items())


def summed(*events: Event) -> Buckets:
    sums: dict[tuple[int, str, str, str, str], list[int]] = {}
    for event in events:
        assert isinstance(event.data, Sampled)
        _sum_up(event.data, event.at_s, sums)
    return {key: (sampled_ms, used) for key, (sampled_ms, used) in sums.items()}


@pytest.mark.parametrize("value", ["9223372036854775794", "-1", "100.0001", "2147483632"])
def test_a_value_that_is_no_percentage_is_refused_with_its_place(value: str) -> None:
    fact = sampled(0, 60, gpu("1"), gpu("1", uuid="GPU-7", sm_active=value)).data
    assert isinstance(fact, Sampled)
    with pytest.raises(BadRecord, match=r"gpus\[GPU-7\]\.sm_active") as refused:
        check(fact)
    assert refused.value.code == "out-of-bounds"


@pytest.mark.parametrize("value", ["0", "100", "99.9999"])
def test_the_bounds_themselves_are_percentages(value: str) -> None:
    fact = sampled(0, 60, gpu(value)).data
    assert isinstance(fact, Sampled)
    check(fact)


def test_an_interval_longer_than_a_year_is_refused() -> None:
    fact = sampled(0, 367 * 86_400, gpu()).data
    assert isinstance(fact, Sampled)
    with pytest.raises(BadRecord, match="interval_s") as refused:
        check(fact)
    assert refused.value.code == "bad-interval"


def test_a_blank_sentinel_in_a_message_is_refused_before_it_is_a_number() -> None:
    value = make(id="x", source="s", at_s=0, data=sampled(0, 60, gpu("1")).data)[1]
    nan = value.replace(b'"gpu_util":1', b'"gpu_util":"NaN"')
    assert nan != value
    with pytest.raises(BadRecord, match="gpu_util"):
        decode(nan)
