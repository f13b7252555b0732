"""Jobs drawn from kinds of work."""

import math
import random
import statistics
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from gpuledger.simulator.demand.mix import Length, WorkKind, chosen, draw


def work(**more: Any) -> WorkKind:  # noqa: ANN401 - what a kind takes
    given = {"sizes": {1: 1}, "work": Length(median_s=600), "minimum_runtimes": {3600: 1}, **more}
    return WorkKind(name="work", **given)


def drawn(kind: WorkKind, count: int, most_gpus: int = 8) -> list[Any]:
    stream = random.Random("stream")
    return [draw(stream, kind, most_gpus, job=f"j{n}", account="org/a", user="ann").job for n in range(count)]


def test_half_of_a_log_normal_length_is_below_the_median_and_its_logarithm_has_the_spread() -> None:
    length = Length(median_s=10_000, spread_permille=1500)
    stream = random.Random("stream")
    logs = [math.log(length.draw(stream)) for _ in range(4_000)]
    assert abs(statistics.mean(logs) - 9.2103) < 0.08
    assert abs(statistics.stdev(logs) - 1.5) < 0.05


def test_a_length_stays_within_its_bounds() -> None:
    length = Length(median_s=100, spread_permille=3000, least_s=50, most_s=200)
    stream = random.Random("stream")
    lengths = {length.draw(stream) for _ in range(500)}
    assert (min(lengths), max(lengths)) == (50, 200)


def test_a_constant_draws_nothing() -> None:
    stream, other = random.Random("stream"), random.Random("stream")
    assert Length(median_s=7).draw(stream) == 7
    assert stream.random() == other.random()


def test_the_mean_of_a_length_is_that_of_its_draws() -> None:
    length = Length(median_s=1000, spread_permille=800)
    stream = random.Random("stream")
    assert length.mean_s == pytest.approx(
        statistics.mean(length.draw(stream) for _ in range(20_000)), rel=0.03
    )


def test_sizes_come_as_often_as_they_are_said_and_none_is_larger_than_the_user_asks_for() -> None:
    sizes = Counter(job.gpus_milli for job in drawn(work(sizes={1: 3, 4: 1, 64: 100}), 4_000, most_gpus=8))
    assert sizes.keys() == {1000, 4000}
    assert sizes[1000] / 4_000 == pytest.approx(0.75, abs=0.03)


def test_the_smallest_size_is_asked_for_even_when_it_is_larger() -> None:
    assert {job.gpus_milli for job in drawn(work(sizes={64: 1, 128: 1}), 20, most_gpus=8)} == {64_000}


def test_part_of_them_ask_to_run_unallocated() -> None:
    jobs = drawn(work(unallocated_permille=300), 3_000)
    assert {job.minimum_runtime_s for job in jobs} == {0, 3600}
    assert sum(not job.minimum_runtime_s for job in jobs) / 3_000 == pytest.approx(0.3, abs=0.03)


def test_a_time_limit_leaves_room_for_loading_and_work() -> None:
    kind = work(
        work=Length(median_s=3000, spread_permille=1000),
        startup=Length(median_s=60),
        time_limits_s=(600, 3600, 36_000),
    )
    for job in drawn(kind, 500):
        needed_s = job.startup_s + job.work_s
        assert job.time_limit_s >= needed_s
        assert job.time_limit_s in {600, 3600, 36_000, 2 * needed_s}


def test_idle_sessions_never_saved_work_and_patience_are_as_said() -> None:
    kind = work(
        kind="interactive",
        idle=Length(median_s=900),
        idle_permille=500,
        checkpoints={0: 1, 1800: 1},
        patience=Length(median_s=50),
        resumable_permille=0,
    )
    jobs = drawn(kind, 200)
    assert {job.idle_s for job in jobs} == {0, 900}
    assert {job.checkpoint_s for job in jobs} == {None, 1800}
    assert {(job.patience_s, job.resumable, job.kind) for job in jobs} == {(50, False, "interactive")}


def test_the_same_stream_draws_the_same_jobs() -> None:
    kind = work(sizes={1: 1, 2: 1}, work=Length(median_s=600, spread_permille=1000))
    assert drawn(kind, 50) == drawn(kind, 50)


def test_gpu_seconds_are_those_of_what_fits() -> None:
    kind = work(sizes={1: 3, 4: 1, 64: 5})
    assert kind.mean_gpu_s(8) == pytest.approx((3 * 1 + 4) / 4 * 600)
    assert kind.fits(8)
    assert not replace(kind, sizes={64: 1}).fits(8)


def test_choices_come_as_often_as_they_are_weighted() -> None:
    stream = random.Random("stream")
    found = Counter(chosen(stream, {5: 1, 7: 3}) for _ in range(4_000))
    assert found[7] / 4_000 == pytest.approx(0.75, abs=0.03)
