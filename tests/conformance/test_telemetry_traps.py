"""Traps of telemetry, each on a record in its real format, end to end through its source."""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from gpuledger.events import workload
from gpuledger.events.envelope import Event
from gpuledger.events.host import HealthObserved
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.ingest.telemetry import _sum_up
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import derive
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

DCGM_README = b"""# TYPE DCGM_FI_DEV_MEMORY_TEMP gauge
DCGM_FI_DEV_MEMORY_TEMP{gpu="0", UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"} 9223372036854775794
DCGM_FI_DEV_POWER_USAGE{gpu="0", UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"} 9223372036854775794
DCGM_FI_DEV_GPU_UTIL{gpu="0", UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"} 9223372036854775794
"""
NOON_S = 1_796_040_000


def read(name: str, tmp_path: Path, content: bytes, options: ImportOptions | None = None) -> list[Event]:
    (tmp_path / "f").write_bytes(content)
    items = list(
        source(name).read(tmp_path / "f", options or ImportOptions(host="n17", timezone="UTC", at_s=NOON_S))
    )
    assert all(isinstance(item, Translated) for item in items), items
    return [event for item in items if isinstance(item, Translated) for event, _ in item.events]


def scrape(
    minute: int,
    util: object,
    *,
    gpu: int = 0,
    uuid: str = "GPU-1",
    more: str = "",
    metric: str = "DCGM_FI_DEV_GPU_UTIL",
) -> bytes:
    labels = f'gpu="{gpu}",UUID="{uuid}",pci_bus_id="00000000:18:00.0",modelName="NVIDIA H100",hostname="n17"{more}'
    return f"# time 2026-11-30T12:{minute:02}:00Z\n{metric}{{{labels}}} {util}\n".encode()


def samples(events: Iterable[Event]) -> list[GpuSample]:
    return [gpu for event in events if isinstance(event.data, Sampled) for gpu in event.data.gpus]


def sampled_gpu_seconds(events: Sequence[Event]) -> Counter[tuple[str, str]]:
    """GPU-seconds of samples by device and rung, as the buckets count them."""
    sums: dict[tuple[int, str, str, str, str], list[int]] = {}
    for event in events:
        if isinstance(event.data, Sampled):
            _sum_up(event.data, event.at_s, sums)
    found: Counter[tuple[str, str]] = Counter()
    for (_, uuid, _, _, rung), (sampled_ms, _) in sums.items():
        found[uuid, rung] += sampled_ms
    return found


@pytest.mark.trap(10, "dcgm")
def test_a_sampler_whose_clock_is_ahead_moves_no_money(tmp_path: Path) -> None:
    """The job is charged by the controller's times, whenever its host says that it computed."""
    job = {"cluster": "c", "workload": "4711", "run": "1"}
    started = workload.Started(**job, attempt=1, gpus_milli=1000, hosts=["n17"], account="org/a", user="u")
    ended = workload.Ended(**job, reason="completed")
    facts = [
        Known(fact, at_s, "slurm/c", msgspec.json.encode(fact))
        for fact, at_s in ((started, NOON_S + 60), (ended, NOON_S + 660))
    ]
    early = read(
        "dcgm", tmp_path, scrape(0, 97, more=',hpc_job="4711"') + scrape(1, 97, more=',hpc_job="4711"')
    )
    assert {gpu.handle for gpu in samples(early)} == {"job/4711"}
    assert early[0].at_s < NOON_S + 60
    told = [Known(event.data, event.at_s, event.source, event.digest) for event in early]
    for known in (facts, [*told, *facts]):
        charged = [
            gpu_ms
            for key, gpu_ms in desired(derive(known), Calendar()).items()
            if (key.commodity, key.code) == (PHYSICAL, CHARGE)
        ]
        assert sum(charged) == 600_000


@pytest.mark.trap(19, "dcgm")
def test_a_slice_is_an_exact_part_and_slices_never_pass_the_device(tmp_path: Path) -> None:
    metric = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    first, second = (
        b"".join(
            scrape(minute, "1", metric=metric, more=f',GPU_I_PROFILE="1g.10gb",GPU_I_ID="{part}"')
            if part == 7
            else scrape(minute, "1", metric=metric, more=f',GPU_I_PROFILE="1g.10gb",GPU_I_ID="{part}"').split(
                b"\n", 1
            )[1]
            for part in range(7, 14)
        )
        for minute in (0, 1)
    )
    found = sampled_gpu_seconds(read("dcgm", tmp_path, first + second))
    assert sorted(found.values()) == [142 * 61, *[143 * 61] * 6]
    assert sum(found.values()) == 1000 * 61


@pytest.mark.trap(39, "nvidia-smi-csv")
@pytest.mark.trap(40, "nvidia-smi-csv")
@pytest.mark.parametrize(
    ("before", "after"),
    [("2026/03/29 01:59:30", "2026/03/29 03:00:30"), ("2026/10/25 02:59:30", "2026/10/25 03:00:30")],
)
def test_a_minute_over_a_change_of_clocks_is_a_minute_at_most(
    tmp_path: Path, before: str, after: str
) -> None:
    """Going back, a local time stands for two instants: the first is taken, and the hour after it stays unknown."""
    table = f"timestamp, uuid, utilization.gpu [%]\n{before}, GPU-1, 50 %\n{after}, GPU-1, 50 %\n".encode()
    events = read("nvidia-smi-csv", tmp_path, table, ImportOptions(timezone="Europe/Berlin", host="n1"))
    lengths = [event.data.interval_s for event in events if isinstance(event.data, Sampled)]
    assert lengths == ([1, 60] if "03/29" in before else [1, 1])


@pytest.mark.trap(41, "nvidia-smi-xml")
@pytest.mark.trap(41, "nvidia-smi-csv")
@pytest.mark.trap(41, "xid-log")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "nvidia-smi-xml",
            b"<nvidia_smi_log><timestamp>Tue Jul 14 08:12:38 2026</timestamp></nvidia_smi_log>",
        ),
        ("nvidia-smi-csv", b"timestamp, uuid\n2026/07/14 08:12:38.696, GPU-1\n"),
        ("xid-log", b"[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380\n"),
    ],
)
def test_local_times_without_a_zone_are_not_guessed(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read(name, tmp_path, content, ImportOptions(host="n1"))
    assert "--tz" in caught.value.hint
    assert read(name, tmp_path, content, ImportOptions(host="n1", timezone="UTC"))


@pytest.mark.trap(46, "dcgm")
def test_the_gauge_of_xids_is_a_hint_and_no_evidence(tmp_path: Path) -> None:
    content = scrape(0, 79, metric="DCGM_FI_DEV_XID_ERRORS") + scrape(1, 79, metric="DCGM_FI_DEV_XID_ERRORS")
    (tmp_path / "f").write_bytes(content)
    items = list(source("dcgm").read(tmp_path / "f", ImportOptions()))
    assert [a.code for item in items if isinstance(item, Translated) for a in item.anomalies] == [
        "xid-without-time"
    ] * 2
    assert not [e for e in read("dcgm", tmp_path, content) if isinstance(e.data, HealthObserved)]


@pytest.mark.trap(46, "xid-log")
def test_the_second_of_two_identical_xids_is_seen_in_the_log(tmp_path: Path) -> None:
    line = (
        "2026-11-30T%s+00:00 NVRM: Xid (PCI:0000:9b:00): 74, pid=1, NVLink: fatal error detected on link 3\n"
    )
    events = read("xid-log", tmp_path, (line % "12:00:00" + line % "13:00:00").encode())
    assert [(event.at_s, event.data.code) for event in events if isinstance(event.data, HealthObserved)] == [
        (NOON_S, 74),
        (NOON_S + 3600, 74),
    ]


@pytest.mark.trap(47, "dcgm")
def test_a_blank_is_missing_and_no_measurement(tmp_path: Path) -> None:
    events = read("dcgm", tmp_path, DCGM_README)
    (gpu,) = samples(events)
    assert gpu == GpuSample(uuid="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52")
    assert sampled_gpu_seconds(events) == {}


@pytest.mark.trap(47, "nvidia-smi-xml")
def test_a_device_that_cannot_say_is_not_idle(tmp_path: Path, repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/microsoft-pai/nvidia_smi_outdated_gpu.xml"
    assert sampled_gpu_seconds(read("nvidia-smi-xml", tmp_path, path.read_bytes())) == {}


@pytest.mark.trap(48, "nvidia-smi-csv")
@pytest.mark.trap(48, "nvidia-smi-xml")
@pytest.mark.parametrize(
    ("name", "file"),
    [("nvidia-smi-csv", "h100-mig-query.csv"), ("nvidia-smi-xml", "telegraf-nvidia-smi/a100-sxm4-v12.xml")],
)
def test_utilisation_does_not_exist_in_mig_mode(
    tmp_path: Path, repository: Path, name: str, file: str
) -> None:
    content = (repository / "tests/fixtures/sources/telemetry" / file).read_bytes()
    assert {gpu.gpu_util for gpu in samples(read(name, tmp_path, content))} == {None}


@pytest.mark.trap(48, "dcgm")
def test_liveness_and_use_are_different_rungs(tmp_path: Path) -> None:
    first, second = (
        scrape(minute, 100) + scrape(minute, "0.031", metric="DCGM_FI_PROF_SM_ACTIVE").split(b"\n", 1)[1]
        for minute in (0, 1)
    )
    events = read("dcgm", tmp_path, first + second)
    assert {(gpu.gpu_util, gpu.sm_active) for gpu in samples(events)} == {(Decimal(100), Decimal("3.1"))}
    assert set(sampled_gpu_seconds(events)) == {("GPU-1", "gpu_util"), ("GPU-1", "sm_active")}


@pytest.mark.trap(49, "dcgm")
def test_an_outage_of_the_exporter_is_unknown_time(tmp_path: Path) -> None:
    """61 s are sampled before, 1 s after; nothing of the forty minutes between."""
    events = read("dcgm", tmp_path, scrape(0, 90) + scrape(1, 90) + scrape(41, 90))
    assert sampled_gpu_seconds(events) == {("GPU-1", "gpu_util"): 62_000}


@pytest.mark.trap(50, "dcgm")
def test_devices_that_were_numbered_anew_keep_their_names(tmp_path: Path) -> None:
    before = scrape(0, 10, gpu=0, uuid="GPU-a") + scrape(0, 20, gpu=1, uuid="GPU-b").split(b"\n", 1)[1]
    after = scrape(1, 30, gpu=1, uuid="GPU-a") + scrape(1, 40, gpu=0, uuid="GPU-b").split(b"\n", 1)[1]
    found = samples(read("dcgm", tmp_path, before + after))
    assert [(gpu.uuid, gpu.gpu_util) for gpu in found] == [
        ("GPU-a", 10),
        ("GPU-b", 20),
        ("GPU-a", 30),
        ("GPU-b", 40),
    ]


@pytest.mark.trap(50, "nvidia-smi-xml")
def test_devices_out_of_order_are_known_by_their_uuid(tmp_path: Path, repository: Path) -> None:
    path = repository / "tests/fixtures/sources/telemetry/microsoft-pai/nvidia_smi_out_of_order.xml"
    content = path.read_bytes()
    assert len({gpu.uuid for gpu in samples(read("nvidia-smi-xml", tmp_path, content))}) == 4


@pytest.mark.trap(56, "dcgm")
def test_a_device_that_is_held_and_idle_is_sampled_as_0(tmp_path: Path) -> None:
    events = read("dcgm", tmp_path, scrape(0, 0, more=',hpc_job="7"') + scrape(1, 0, more=',hpc_job="7"'))
    assert {(gpu.handle, gpu.gpu_util) for gpu in samples(events)} == {("job/7", Decimal(0))}
    assert sampled_gpu_seconds(events) == {("GPU-1", "gpu_util"): 61_000}
