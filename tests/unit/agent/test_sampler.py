"""The agent's loop: one message per interval, whatever the driver does."""

from itertools import islice
from pathlib import Path
from typing import Any

from tests.unit.agent.recorded import GPU_1, GPU_2, START_S, Clock, Script, ticking

from gpuledger.agent.checking import Health
from gpuledger.agent.driver import Device, Snapshot, Xid
from gpuledger.agent.owners import Nobody
from gpuledger.agent.sampler import Config, Parts, Sampler
from gpuledger.agent.spool import Spool
from gpuledger.events.envelope import Event, decode
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.events.host import HealthObserved
from gpuledger.events.telemetry import Sampled

Steps = list[dict[Device, Snapshot | None] | str]


def worked(
    tmp_path: Path, steps: Steps, xids: dict[int, Xid] | None = None, limit_bytes: int = 1 << 20
) -> tuple[list[Event], list[str], Script]:
    clock, notes = Clock(), []
    driver = Script(clock, steps, xids)
    spool = Spool(tmp_path / "spool", limit_bytes)
    parts = Parts(driver, Nobody(), spool, Health(tmp_path / "health.json"), clock, clock.sleep, notes.append)
    sampler = Sampler(Config(cluster="west", host="n1"), parts)
    left = iter(range(len(steps)))
    sampler.run(lambda: next(left, None) is None)
    return [decode(message.value.encode()) for _, message in spool.waiting(10_000)], notes, driver


def of(events: list[Event], kind: type) -> list[Any]:
    return [event.data for event in events if isinstance(event.data, kind)]


def busy(count: int) -> Steps:
    return [{GPU_1: said} for said in islice(ticking(), count)]


def test_one_message_a_minute_and_a_heartbeat(tmp_path: Path) -> None:
    events, notes, _ = worked(tmp_path, busy(25))
    samples = [event for event in events if isinstance(event.data, Sampled)]
    assert [(event.at_s - START_S, event.data.interval_s) for event in samples] == [(0, 60), (60, 60)]
    assert {event.source for event in events} == {"nvml/west"}
    assert samples[0].id == f"n1/{START_S}/{START_S + 60}"
    assert [gpu.energy_mj for event in samples for gpu in event.data.gpus] == [39_000_000, 39_000_000]
    assert of(events, Heartbeat) == [Heartbeat(cluster="west", host="n1")]
    assert notes == []


def test_what_was_measured_last_is_told_at_the_end(tmp_path: Path) -> None:
    events, _, driver = worked(tmp_path, busy(15))
    assert [fact.interval_s for fact in of(events, Sampled)] == [60, 10]
    assert driver.closed == 1


def test_an_xid_is_told_with_its_time(tmp_path: Path) -> None:
    events, _, _ = worked(tmp_path, busy(14), {2: Xid(GPU_1, 79)})
    (event,) = [event for event in events if isinstance(event.data, HealthObserved)]
    assert (event.at_s - START_S, event.data.code, event.data.gpu_uuid, event.data.pci) == (
        12, 79, "GPU-1", "00000000:18:00.0",
    )  # fmt: skip
    (seen,) = [xid for fact in of(events, Sampled) for gpu in fact.gpus for xid in gpu.xid or ()]
    assert (seen.code, seen.at) == (79, "2026-11-30T12:00:12.500000Z")


def test_a_missing_driver_is_told_once_and_sampling_begins_when_it_comes(tmp_path: Path) -> None:
    events, notes, _ = worked(tmp_path, ["no driver"] * 5 + busy(10))
    assert [(fact.interval_s, len(fact.gpus)) for fact in of(events, Sampled)] == [(35, 1), (10, 1)]
    assert notes == ["no driver. ", "the driver answers again"]
    assert len(of(events, Heartbeat)) == 1


def test_a_driver_that_goes_away_leaves_a_hole_and_no_wrong_sample(tmp_path: Path) -> None:
    events, _, driver = worked(tmp_path, busy(4) + ["gone"] * 6 + busy(6))
    spans = [(e.at_s - START_S, e.data.interval_s) for e in events if isinstance(e.data, Sampled)]
    assert spans == [(0, 15), (50, 10), (60, 15)]
    assert driver.closed == 7


def test_a_device_that_falls_off_the_bus_is_an_observation_and_the_others_go_on(tmp_path: Path) -> None:
    one, two = ticking(), ticking()
    steps: Steps = [{GPU_1: next(one), GPU_2: next(two)} for _ in range(5)]
    steps += [{GPU_1: None, GPU_2: next(two)} for _ in range(3)]
    steps += [{GPU_2: next(two)} for _ in range(2)]
    steps += [{GPU_1: Snapshot(energy_mj=5), GPU_2: next(two)} for _ in range(3)]
    events, _, _ = worked(tmp_path, steps)
    observed = [
        (e.at_s - START_S, e.data.kind, e.data.gpu_uuid) for e in events if isinstance(e.data, HealthObserved)
    ]
    assert observed == [(25, "lost", "GPU-1"), (50, "clean", "GPU-1")]
    covered = dict.fromkeys(("GPU-1", "GPU-2"), 0)
    for fact in of(events, Sampled):
        for gpu in fact.gpus:
            covered[gpu.uuid] += fact.interval_s
    assert covered == {"GPU-1": 35, "GPU-2": 60}


def test_a_device_that_stays_lost_makes_the_driver_open_anew_each_minute(tmp_path: Path) -> None:
    lost: Steps = [{GPU_1: None, GPU_2: said} for said in islice(ticking(), 40)]
    _, _, driver = worked(tmp_path, busy(1) + lost)
    assert driver.closed == 1 + 3


def test_what_a_full_spool_lost_is_declared_and_does_not_push_out_more(tmp_path: Path) -> None:
    """An hour without a broker: what is neither kept nor declared as lost is nothing."""
    events, _, _ = worked(tmp_path, busy(721), limit_bytes=4000)
    pending = Spool(tmp_path / "spool", 4000).lost()
    declared = [gap for beat in of(events, Heartbeat) for gap in beat.gaps or ()]
    assert {gap.reason for gap in declared} == {"spool-full"}
    lost = sum(gap.messages for gap in declared) + (pending.messages if pending else 0)
    assert lost + len(events) == 60 + 5
    assert len(of(events, Heartbeat)) < len(of(events, Sampled))


def test_a_loss_is_declared_at_once_when_the_broker_is_back(tmp_path: Path) -> None:
    clock, spool = Clock(), Spool(tmp_path / "spool", 1000)
    parts = Parts(Script(clock, busy(30)), Nobody(), spool, Health(tmp_path / "h"), clock, clock.sleep, print)
    sampler = Sampler(Config(cluster="west", host="n1"), parts)
    for _ in range(26):
        sampler.step()
        sampler.pause()
    lost = spool.lost()
    assert lost is not None
    spool.done([number for number, _ in spool.waiting(100)])
    sampler.step()
    ((_, message),) = spool.waiting(100)
    (gap,) = decode(message.value.encode()).data.gaps
    assert (gap.messages, int(gap.start.timestamp())) == (lost.messages, START_S)
    assert spool.lost() is None


def test_a_disk_that_takes_nothing_is_told_once_and_sampling_goes_on(tmp_path: Path) -> None:
    clock, notes, spool = Clock(), list[str](), Spool(tmp_path / "spool", 1 << 20)
    health = Health(tmp_path / "none" / "health.json")
    parts = Parts(Script(clock, busy(14)), Nobody(), spool, health, clock, clock.sleep, notes.append)
    steps = iter(range(14))
    Sampler(Config(cluster="west", host="n1"), parts).run(lambda: next(steps, None) is None)
    assert len([note for note in notes if "cannot be written" in note]) == len(notes) == 1
    assert len(spool.waiting(10)) == 3
