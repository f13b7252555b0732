"""The bundled traces and Helios Earth, counted straight from the events against figures computed elsewhere (pandas)."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

from gpuledger.events.host import Registered
from gpuledger.events.telemetry import Sampled
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.amounts import gpu_hours
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

DAY_S = 86_400


@dataclass
class Tally:
    """What the events of one file come to, by the simplest arithmetic there is."""

    records: int = 0
    faults: list[Fault] = field(default_factory=list)
    gpu_ms: Counter[str] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    used: dict[str, Decimal] = field(default_factory=dict)
    anomalies: Counter[str] = field(default_factory=Counter)
    runs: list[tuple[int, int, int]] = field(default_factory=list)
    never: int = 0
    host_gpus: int = 0
    identities: set[tuple[str, str]] = field(default_factory=set)
    events: int = 0
    position: int = 0

    def add(self, item: Translated | Fault) -> None:
        assert item.bytes_read >= self.position
        self.position = item.bytes_read
        self.records += 1
        if isinstance(item, Fault):
            self.faults.append(item)
            return
        self.anomalies.update(anomaly.code for anomaly in item.anomalies)
        account, run, milli = "", None, 0
        for event, _ in item.events:
            self.events += 1
            self.identities.add((event.source, event.id))
            match event.data:
                case Submitted(account=account):
                    pass
                case Started(gpus_milli=milli) as started:
                    run = event.at_s
                    account = account or started.account or ""
                    model = started.gpu_model
                case Ended(run=None):
                    self.never += 1
                case Ended():
                    assert run is not None
                    amount = (event.at_s - run) * milli
                    self.gpu_ms[account] += amount
                    self.by_model[str(model)] += amount
                    self.runs.append((run, event.at_s, milli))
                case Registered(gpus=gpus):
                    self.host_gpus += gpus
                case Sampled(interval_s=interval_s, gpus=samples):
                    for sample in samples:
                        assert sample.gpu_util is not None
                        used = self.used.get(account, Decimal(0))
                        self.used[account] = used + sample.gpu_util * interval_s
                case other:
                    raise AssertionError(other)

    def total(self) -> str:
        return str(gpu_hours(sum(self.gpu_ms.values())))

    def hours(self) -> dict[str, str]:
        return {account: str(gpu_hours(amount)) for account, amount in self.gpu_ms.items()}

    def used_hours(self, account: str | None = None) -> str:
        used = self.used[account] if account else sum(self.used.values(), Decimal(0))
        return str((used / 100 / 3600).quantize(Decimal("0.001")))

    def windows(self, width_s: int) -> dict[int, str]:
        split: Counter[int] = Counter()
        for begin_s, end_s, milli in self.runs:
            for window in range(begin_s // width_s, end_s // width_s + 1):
                inside = min(end_s, (window + 1) * width_s) - max(begin_s, window * width_s)
                split[window] += inside * milli
        return {window: str(gpu_hours(amount)) for window, amount in split.items() if amount}


def tally(name: str, path: Path, timezone: str | None = None) -> Tally:
    result = Tally()
    for item in source(name).read(path, ImportOptions(timezone=timezone)):
        result.add(item)
    assert result.position == source(name).size(path)
    return result


@pytest.fixture(scope="module")
def bundled(repository: Path) -> Path:
    return repository / "services/gpuledger/demo/data"


@pytest.fixture(scope="module")
def philly(bundled: Path) -> Tally:
    return tally("philly", bundled / "philly.csv.gz")


@pytest.fixture(scope="module")
def alex(bundled: Path) -> Tally:
    return tally("clustercockpit", bundled / "alex.csv.gz")


def test_philly_whole(philly: Tally) -> None:
    assert philly.records == 82_247
    assert philly.faults == []
    assert philly.total() == "978078.473"
    assert philly.anomalies == {"identical-row": 65}
    assert len(philly.identities) == philly.events == 3 * 82_247, "every event has an identity of its own"


def test_philly_by_virtual_cluster(philly: Tally) -> None:
    hours = philly.hours()
    assert len(hours) == 15
    expected = {
        "ee9e8c": "256112.178",
        "7f04ca": "164930.654",
        "b436b2": "125739.500",
        "6214e9": "97184.822",
        "6c71a0": "82203.257",
        "2869ce": "80695.144",
        "0e4a51": "77556.306",
        "103959": "42880.256",
        "11cb48": "28104.295",
        "e13805": "13557.858",
    }
    assert {account: hours[account] for account in (f"philly/{vc}" for vc in expected)} == {
        f"philly/{vc}": amount for vc, amount in expected.items()
    }


def test_alex_whole(alex: Tally) -> None:
    assert alex.records == 544
    assert alex.faults == []
    assert alex.total() == "3980.037"
    assert alex.used_hours() == "2859.882"
    assert len(alex.identities) == alex.events
    # 20 jobs with GPUs and 3 without ran past their limit; one device has no address.
    assert alex.anomalies == {"past-time-limit": 23, "gpu-count-differs": 1}


def test_alex_by_project(alex: Tally) -> None:
    expected = {
        "proj016": ("489.919", "379.686"),
        "proj006": ("381.687", "350.089"),
        "proj015": ("357.290", "322.765"),
        "proj002": ("350.938", "186.454"),
        "proj021": ("305.713", "152.751"),
        "proj004": ("302.426", "247.652"),
        "proj012": ("254.715", "178.979"),
        "proj007": ("212.450", "172.860"),
        "proj005": ("195.396", "71.333"),
        "proj014": ("192.589", "147.460"),
    }
    hours = alex.hours()
    found = {project: (hours[f"alex/{project}"], alex.used_hours(f"alex/{project}")) for project in expected}
    assert found == expected
    assert hours["fritz/proj024"] == "0.000"
    assert len([account for account in hours if account.startswith("alex/")]) == 23


def test_alex_by_gpu_model(alex: Tally) -> None:
    hours = {model: str(gpu_hours(amount)) for model, amount in alex.by_model.items() if amount}
    assert hours == {"a100": "1152.667", "a100m80": "652.002", "a40": "2175.368"}


def test_alex_by_day(alex: Tally) -> None:
    first = 19_395  # 2023-02-07; its 507.6225 GPU-hours are a tie, which is rounded half to even
    assert alex.windows(DAY_S) == {
        first: "507.622",
        first + 1: "2983.182",
        first + 2: "478.236",
        first + 3: "10.996",
    }


@pytest.mark.parametrize("name", ["", "openb_pod_list_default.csv.gz"])
def test_openb_by_folder_and_by_pod_file(bundled: Path, name: str) -> None:
    openb = tally("openb", bundled / name)
    assert openb.records == 8_152 + (0 if name else 1_213)
    assert openb.host_gpus == (0 if name else 6_212)
    assert openb.faults == []
    assert openb.anomalies == {}
    assert openb.never == 897
    assert openb.total() == "51470.674"
    assert openb.hours() == {
        "openb/ls": "41413.360",
        "openb/burstable": "7459.201",
        "openb/be": "1311.636",
        "openb/guaranteed": "1286.478",
    }
    assert openb.windows(30 * DAY_S) == {
        0: "1283.747",
        1: "4317.257",
        2: "7148.822",
        3: "12877.423",
        4: "25843.424",
    }
    assert len(openb.identities) == openb.events


def test_helios_earth_by_virtual_cluster(repository: Path) -> None:
    path = repository / "tests/fixtures/sources/helios/earth_vc_state_changes_2020-05.csv.gz"
    earth = tally("helios", path, "Asia/Shanghai")
    assert (earth.records, earth.faults, earth.anomalies) == (48_168, [], {})
    assert earth.total() == "424772.617"
    expected = {
        "vc6YE": "139683.717", "vcvlY": "48130.967", "vcLJZ": "41518.600", "vcpDC": "37930.867",
        "vc3sl": "29869.117", "vcTJs": "26063.983", "vcMod": "24411.917", "vchbv": "19573.067",
        "vc8Sj": "17802.867", "vcSoL": "11333.333", "vccaA": "10650.817", "vcJLV": "8592.067",
        "vcgkz": "5415.467", "vcdI0": "3319.867", "vcira": "374.833", "vcJkd": "101.133",
    }  # fmt: skip
    assert earth.hours() == {f"helios/{vc.lower()}": hours for vc, hours in expected.items()}
    assert len(earth.identities) == earth.events == 2 * 48_168
