"""Snapshots become messages that cover time once, and nothing that nobody saw."""

import itertools
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.recorded import GPU_1, GPU_2

from gpuledger.agent.driver import Device, Snapshot
from gpuledger.agent.sampling import Measured, Sampling
from gpuledger.events.telemetry import XidSeen

Owned = dict[Device, tuple[Snapshot, str | None]]


def said(
    util: int | None = 50, *, handle: str | None = None, **keys: int | None
) -> tuple[Snapshot, str | None]:
    return Snapshot(gpu_util=util, **keys), handle


def fed(sampling: Sampling, *steps: tuple[int, Owned]) -> list[Measured]:
    found = [sampling.add(at_s, owned) for at_s, owned in steps]
    return [measured for measured in found if measured is not None]


def spans(found: list[Measured]) -> list[tuple[int, int]]:
    return [(measured.start_s, measured.end_s) for measured in found]


def test_an_interval_ends_at_a_multiple_of_its_length_and_the_next_begins_there() -> None:
    found = fed(Sampling(60, 15), *((at_s, {GPU_1: said()}) for at_s in range(630, 790, 5)))
    assert spans(found) == [(630, 660), (660, 720), (720, 780)]


def test_a_sample_is_the_mean_of_what_was_said() -> None:
    steps = [
        (600, said(0, memory_bytes=0, power_mw=100_000, energy_mj=10, ecc_uncorrected=1)),
        (630, said(50, memory_bytes=1 << 20, power_mw=200_000, energy_mj=3_000, ecc_uncorrected=1)),
        (660, said(101 - 1, memory_bytes=2 << 20, power_mw=300_000, energy_mj=9_010, ecc_uncorrected=3)),
    ]
    ((measured),) = fed(Sampling(60, 45), *((at_s, {GPU_1: one}) for at_s, one in steps))
    (gpu,) = measured.gpus
    assert (gpu.gpu_util, gpu.memory_mib, gpu.power_w) == (Decimal(50), Decimal(1), Decimal(200))
    assert (gpu.energy_mj, gpu.ecc_uncorrected) == (9_000, 2)


def test_shares_are_of_the_time_between_readings_so_the_first_of_an_interval_is_not_of_it() -> None:
    steps = [
        (600, Snapshot(sm_active=90.0, tensor_active=None)),
        (630, Snapshot(sm_active=10.0, tensor_active=20.0)),
        (660, Snapshot(sm_active=30.0, tensor_active=40.005, gr_engine_active=5.0)),
    ]
    ((measured),) = fed(Sampling(60, 45), *((at_s, {GPU_1: (one, None)}) for at_s, one in steps))
    (gpu,) = measured.gpus
    assert (gpu.sm_active, gpu.tensor_active) == (Decimal("20.00"), Decimal("30.00"))
    assert gpu.gr_engine_active is None


def test_what_one_reading_could_not_say_is_unknown_for_the_interval() -> None:
    steps = [(600, said(50, energy_mj=5)), (630, said(None, energy_mj=None)), (660, said(50, energy_mj=9))]
    ((measured),) = fed(Sampling(60, 45), *((at_s, {GPU_1: one}) for at_s, one in steps))
    (gpu,) = measured.gpus
    assert (gpu.gpu_util, gpu.energy_mj) == (None, None)


def test_a_counter_that_began_anew_leaves_the_energy_unknown() -> None:
    steps = [(600, said(energy_mj=500)), (630, said(energy_mj=2)), (660, said(energy_mj=9))]
    ((measured),) = fed(Sampling(60, 45), *((at_s, {GPU_1: one}) for at_s, one in steps))
    assert measured.gpus[0].energy_mj is None


def test_a_device_changes_hands_between_messages() -> None:
    found = fed(
        Sampling(60, 15),
        (600, {GPU_1: said(handle="job/1"), GPU_2: said()}),
        (605, {GPU_1: said(handle="job/1"), GPU_2: said()}),
        (610, {GPU_1: said(handle="job/2"), GPU_2: said()}),
        (615, {GPU_1: said(handle="job/2")}),
        (620, {GPU_1: said(handle="job/2")}),
    )
    assert spans(found) == [(600, 610), (610, 615)]
    assert [[(gpu.uuid, gpu.handle) for gpu in measured.gpus] for measured in found] == [
        [("GPU-1", "job/1"), ("GPU-2", None)],
        [("GPU-1", "job/2"), ("GPU-2", None)],
    ]


def test_a_pause_is_not_covered() -> None:
    sampling = Sampling(60, 15)
    found = fed(sampling, *((at_s, {GPU_1: said()}) for at_s in (600, 605, 640, 645)))
    assert spans(found) == [(600, 605)]
    assert sampling.finish() == Measured(640, 645, sampling_gpus(50))
    assert sampling.finish() is None


def sampling_gpus(util: int) -> tuple[object, ...]:
    from gpuledger.events.telemetry import GpuSample

    return (GpuSample(uuid="GPU-1", gpu_util=Decimal(util)),)


def test_a_clock_that_is_set_back_covers_nothing_twice() -> None:
    found = fed(Sampling(60, 15), *((at_s, {GPU_1: said()}) for at_s in (600, 605, 590, 595, 600)))
    assert spans(found) == [(600, 605), (590, 600)]


def test_an_error_goes_with_the_next_message_of_its_device() -> None:
    sampling = Sampling(60, 15)
    sampling.add(600, {GPU_1: said()})
    sampling.xid("GPU-1", XidSeen(code=79, at="2026-11-30T12:00:03Z"))
    measured = sampling.add(605, {GPU_1: said(), GPU_2: said()})
    assert measured is not None
    assert [gpu.xid for gpu in measured.gpus] == [[XidSeen(code=79, at="2026-11-30T12:00:03Z")]]


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["job/1", "job/2", None]), st.booleans()), max_size=60
    )
)
def test_messages_of_a_clock_that_runs_never_overlap(steps: list[tuple[int, str | None, bool]]) -> None:
    sampling, at_s, found = Sampling(60, 15), 1000, []
    for step_s, run, has_second in steps:
        at_s += step_s
        owned = {GPU_1: said(handle=run)} | ({GPU_2: said()} if has_second else {})
        found += [sampling.add(at_s, owned)]
    found += [sampling.finish()]
    told = [measured for measured in found if measured is not None]
    for before, after in itertools.pairwise(told):
        assert before.end_s <= after.start_s
    assert all(measured.start_s < measured.end_s <= measured.start_s + 75 for measured in told)
