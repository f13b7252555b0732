"""Scrapes of dcgm-exporter: blanks are missing, labels name runs, and the clock is never guessed."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sources.rows import codes, data, events, one, only, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

STAMP = b"# time 2026-11-30T12:00:00Z\n"
LABELS = 'gpu="0",UUID="GPU-1",pci_bus_id="00000000:18:00.0",modelName="NVIDIA H100",hostname="n17"'


def metric(name: str, value: str, labels: str = LABELS) -> bytes:
    return f"{name}{{{labels}}} {value}\n".encode()


def gpus(item: Translated) -> list[Any]:
    return list(data(item)[0].gpus)


@pytest.fixture
def scrape(repository: Path) -> bytes:
    return (repository / "tests/fixtures/sources/telemetry/h100.prom").read_bytes()


def test_a_scrape_is_one_message_of_a_host(tmp_path: Path, scrape: bytes) -> None:
    item = one("dcgm", tmp_path / "s", STAMP + scrape)
    (event,) = events(item)
    assert (event.id, event.source) == ("n17/1796040000", "dcgm/dcgm")
    assert (event.data.host, event.data.interval_s, event.at_s) == ("n17", 1, 1_796_039_999)
    first, second, small, large = gpus(item)
    assert (first.uuid, first.handle) == ("GPU-0a", "job/4711")
    assert (first.gpu_util, first.gr_engine_active, first.tensor_active) == (
        97,
        Decimal("91.3"),
        Decimal("40.1"),
    )
    assert (first.memory_mib, first.power_w) == (71_234, Decimal("655.125"))
    assert second.handle == "pod/vision/train-0"
    assert (small.uuid, small.gpus_milli, small.gr_engine_active) == ("GPU-2c/7", 143, 50)
    assert (large.uuid, large.gpus_milli) == ("GPU-2c/2", 428)


def test_blanks_are_missing_and_an_idle_device_is_0(tmp_path: Path, scrape: bytes) -> None:
    _, second, small, _ = gpus(one("dcgm", tmp_path / "s", STAMP + scrape))
    assert second.gpu_util == 0
    assert (second.gr_engine_active, second.memory_mib, small.gpu_util) == (None, None, None)


@pytest.mark.parametrize(
    "blank",
    ["2147483632", "2147483635", "9223372036854775792", "9223372036854775794", "140737488355329.0", "NaN"],
)
def test_every_blank_of_dcgm_is_missing(tmp_path: Path, blank: str) -> None:
    content = STAMP + metric("DCGM_FI_DEV_POWER_USAGE", blank) + metric("DCGM_FI_PROF_SM_ACTIVE", blank)
    item = one("dcgm", tmp_path / "s", content)
    assert (gpus(item)[0].power_w, gpus(item)[0].sm_active) == (None, None)
    assert codes(item) == []


def test_the_gauge_of_errors_is_a_hint_without_a_time(tmp_path: Path, scrape: bytes) -> None:
    item = one("dcgm", tmp_path / "s", STAMP + scrape)
    assert codes(item) == ["xid-without-time"]
    assert "XID 79" in item.anomalies[0].message


def test_scrapes_follow_each_other_in_one_file(tmp_path: Path) -> None:
    energy = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    content = b"".join(
        b"# time 2026-11-30T12:%02d:00Z\n" % minute + metric(energy, str(counter))
        for minute, counter in enumerate((1000, 37_000, 500))
    )
    items = read("dcgm", tmp_path / "s", content)
    assert [item.line for item in items] == [1, 3, 5]
    told = [data(item)[0] for item in items if isinstance(item, Translated)]
    assert [fact.interval_s for fact in told] == [1, 60, 60]
    assert [fact.gpus[0].energy_mj for fact in told] == [None, 36_000, None]


def test_both_spellings_of_the_host_are_read_and_several_hosts_in_one_scrape(tmp_path: Path) -> None:
    old = LABELS.replace('hostname="n17"', 'Hostname="n18"')
    content = STAMP + metric("DCGM_FI_DEV_GPU_UTIL", "1") + metric("DCGM_FI_DEV_GPU_UTIL", "2", old)
    assert [fact.host for fact in data(one("dcgm", tmp_path / "s", content))] == ["n17", "n18"]


def test_samples_may_carry_their_time(tmp_path: Path) -> None:
    content = metric("DCGM_FI_DEV_GPU_UTIL", "1 1796040000123") + metric(
        "DCGM_FI_DEV_FB_USED", "2 1796040001999"
    )
    (event,) = events(one("dcgm", tmp_path / "s", content))
    assert event.at_s + event.data.interval_s == 1_796_040_001


def test_without_any_time_the_file_is_refused_unless_the_person_says_when(
    tmp_path: Path, scrape: bytes
) -> None:
    with pytest.raises(Refused, match="nothing says when") as caught:
        read("dcgm", tmp_path / "s", scrape)
    assert "--at" in caught.value.hint
    item = one("dcgm", tmp_path / "s", scrape, ImportOptions(at_s=1_796_040_000))
    assert events(item)[0].id == "n17/1796040000"


def test_a_time_without_a_zone_is_a_fault(tmp_path: Path) -> None:
    content = b"# time 2026-11-30T12:00:00\n" + metric("DCGM_FI_DEV_GPU_UTIL", "1")
    assert only(read("dcgm", tmp_path / "s", content)).code == "naive-time"


def test_a_series_that_stands_twice_counts_once(tmp_path: Path) -> None:
    content = STAMP + metric("DCGM_FI_DEV_GPU_UTIL", "1") + metric("DCGM_FI_DEV_GPU_UTIL", "2")
    item = one("dcgm", tmp_path / "s", content)
    assert (gpus(item)[0].gpu_util, codes(item)) == (1, ["series-twice"])


def test_an_impossible_value_is_reported_and_left_out(tmp_path: Path) -> None:
    item = one("dcgm", tmp_path / "s", STAMP + metric("DCGM_FI_PROF_SM_ACTIVE", "1.5"))
    assert (gpus(item)[0].sm_active, codes(item)) == (None, ["impossible-value"])


def test_remapped_rows_are_observations(tmp_path: Path) -> None:
    content = (
        STAMP + metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1") + metric("DCGM_FI_DEV_ROW_REMAP_PENDING", "1")
    )
    told = data(one("dcgm", tmp_path / "s", content))[1:]
    assert [(fact.kind, fact.gpu_uuid, fact.pci) for fact in told] == [
        ("remap_failed", "GPU-1", "00000000:18:00.0"),
        ("remap_pending", "GPU-1", "00000000:18:00.0"),
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",hostname="n17"} many\n', "bad-exposition"),
        (b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1,hostname="n17"} 1\n', "bad-exposition"),
        (b'DCGM_FI_DEV_GPU_UTIL{gpu="0",hostname="n17"} 1\n', "missing-value"),
        (
            b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",hostname="n17",GPU_I_ID="3",GPU_I_PROFILE="x"} 1\n',
            "unknown-profile",
        ),
        (b'DCGM_FI_DEV_GPU_UTIL{UUID="\xff",hostname="n17"} 1\n', "not-utf8"),
        (b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",hostname="n17",hpc_job="47\x0011"} 1\n', "nul-byte"),
    ],
)
def test_a_broken_scrape_is_one_fault_and_the_next_stands_for_itself(
    tmp_path: Path, line: bytes, code: str
) -> None:
    after = b"# time 2026-11-30T12:01:00Z\n" + metric("DCGM_FI_DEV_GPU_UTIL", "1")
    fault, good = read("dcgm", tmp_path / "s", STAMP + line + after)
    assert only([fault]).code == code
    assert isinstance(good, Translated)
    assert data(good)[0].interval_s == 1


@pytest.mark.parametrize("stamp", ["NaN", "+Inf"])
def test_a_timestamp_that_is_no_number_is_a_fault(tmp_path: Path, stamp: str) -> None:
    options = ImportOptions(at_s=1_796_040_000)
    scrape = metric("DCGM_FI_DEV_GPU_UTIL", f"1 {stamp}")
    assert only(read("dcgm", tmp_path / "s", scrape, options)).code == "not-a-number"


def test_a_fault_is_read_again_with_what_it_kept(tmp_path: Path) -> None:
    broken = STAMP + b'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1"} many\n'
    fault = only(read("dcgm", tmp_path / "s", broken, ImportOptions(host="n3", cluster="west")))
    mended = source("dcgm").retry(fault.raw.replace(b"many", b"7"), fault.context)
    assert (data(mended)[0].host, data(mended)[0].gpus[0].gpu_util) == ("n3", 7)


@pytest.mark.parametrize(
    "content", [b"go_goroutines 7\n", b"DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization.\n", b"\n"]
)
def test_what_is_no_scrape_of_the_exporter_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(Refused, match="no metric of dcgm-exporter"):
        read("dcgm", tmp_path / "s", content)


@pytest.mark.parametrize("profiles", [("4g.40gb", "4g.40gb"), ("1g.10gb", "1g.6gb"), ("9g.1gb", "1g.10gb")])
def test_slices_that_a_device_cannot_have_are_refused(tmp_path: Path, profiles: tuple[str, str]) -> None:
    text = b"".join(
        metric(
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "1", f'{LABELS},GPU_I_PROFILE="{profile}",GPU_I_ID="{number}"'
        )
        for number, profile in enumerate(profiles)
    )
    assert only(read("dcgm", tmp_path / "s", STAMP + text)).code == "unknown-profile"


def test_a_device_that_runs_share_is_of_none_of_them(tmp_path: Path) -> None:
    text = b"".join(metric("DCGM_FI_DEV_GPU_UTIL", "9", f'{LABELS},hpc_job="{job}"') for job in (7, 8))
    assert [gpu.handle for gpu in gpus(one("dcgm", tmp_path / "s", STAMP + text))] == [None]


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ('namespace="a",pod="b"', "pod/a/b"),
        ('namespace="gpu-operator",pod="dcgm-exporter-x",exported_namespace="a",exported_pod="b"', "pod/a/b"),
        ('namespace="a",pod="b",pod_uid="6f1c"', "pod/6f1c"),
        ('hpc_job="8841_7"', "job/8841_7"),
        ('hpc_job="",pod=""', None),
    ],
)
def test_labels_say_what_the_host_calls_the_run(tmp_path: Path, labels: str, handle: str | None) -> None:
    text = metric("DCGM_FI_DEV_GPU_UTIL", "9", f"{LABELS},{labels}")
    assert [gpu.handle for gpu in gpus(one("dcgm", tmp_path / "s", STAMP + text))] == [handle]
