"""Scrapes of dcgm-exporter: Prometheus text, many of them in one file if each says when it was taken.

The text holds no time of day, so a line ``# time 2026-11-30T12:00:00Z`` stands before each scrape, or samples
carry timestamps, or the person who imports says when (``--at``). Nothing is guessed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from operator import itemgetter
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from gpuledger.events.envelope import Event
from gpuledger.kernel import handles
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.blocks import begun, blocks, opened
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import read_lines
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.readings import Device, Readings, measured
from gpuledger.sources.slices import Part, apportioned, part_of
from gpuledger.sources.values import LocalTimes, Odd, instant_in_bounds, name, shown

_FULL = 100

_PERCENTS = {"DCGM_FI_DEV_GPU_UTIL": ("gpu_util", 1)} | {
    metric: (rung, _FULL)
    for metric, rung in (
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gr_engine_active"),
        ("DCGM_FI_PROF_SM_ACTIVE", "sm_active"),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active"),
    )
}
"""Metric -> its rung, and what makes a percentage of it."""

_OTHERS = (
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_ROW_REMAP_PENDING",
    "DCGM_FI_DEV_XID_ERRORS",
)
_USED = tuple(f"{metric}{{" for metric in (*_PERCENTS, *_OTHERS))
_BLANKS = frozenset(
    float(base + reason) for base in (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 1 << 47) for reason in range(16)
)
"""What DCGM writes where it has no value: for whole numbers of 32 and 64 bits, and for fractions."""

_TIME = re.compile(rb"^#[ \t]*time[ \t]+(\S+)[ \t\r]*$", re.MULTILINE)

_METRIC = re.compile(rb"DCGM_\w+(?:\{|[ \t]+[-+.\dNI])")
_UUID = re.compile(r'\bUUID="([^"]*)"')

_Series = list[Sample]


class _Scrapes(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._times = LocalTimes(options.timezone)
        self._readings = Readings(Dcgm.name, options, context)
        self.found = False

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return when the readings before were taken."""
        del raw
        return self._readings.remember()

    def translate(self, raw: bytes) -> Facts:
        lines = [line for line in raw.split(b"\n") if line.startswith(b"DCGM_")]
        if not any(map(_METRIC.match, lines)):
            return (), ()
        self.found = True
        try:
            return self._scrape(raw, lines)
        except BadRecord:
            self._readings.forget()
            raise

    def _scrape(self, raw: bytes, lines: list[bytes]) -> Facts:
        hosts: dict[str, dict[str, _Series]] = {}
        for sample in _parsed(lines):
            labels = sample.labels
            host = self._readings.host(labels.get("hostname") or labels.get("Hostname"))
            hosts.setdefault(host, {}).setdefault(_key(labels), []).append(sample)
        facts: list[tuple[Event, bytes]] = []
        oddities: list[Odd] = []
        taken: list[tuple[str, int, list[Device]]] = []
        for host, series in hosts.items():
            at_s = self._time(raw, [sample for found in series.values() for sample in found])
            devices = [_device(uuid, found, oddities) for uuid, found in series.items()]
            _weigh(devices, series)
            taken.append((host, at_s, devices))
        for host, at_s, devices in taken:
            told, odd = self._readings.facts(host, at_s, devices)
            facts += told
            oddities += odd
        return tuple(facts), oddities

    def _time(self, raw: bytes, samples: _Series) -> int:
        """Return when a scrape was taken: its own line says, or the newest of its samples, or the person."""
        if (stamp := _TIME.search(raw)) is not None:
            text = stamp[1].decode("utf-8", "replace")
            at_s, odd = self._times.read("# time", text)
            if odd is not None or not _HAS_ZONE.search(text):
                raise BadRecord(
                    f"# time: {shown(text)} has no zone",
                    code="naive-time",
                    hint="write it as date -u +%FT%TZ prints it",
                )
            return at_s
        stamps = [float(sample.timestamp) for sample in samples if sample.timestamp is not None]
        if not all(map(isfinite, stamps)):
            raise BadRecord(
                "timestamp: is no number", code="not-a-number", hint="write milliseconds since 1970"
            )
        if stamps:
            return instant_in_bounds("timestamp", int(max(stamps)), str(max(stamps)))
        if self.options.at_s is None:
            raise BadRecord(
                "nothing says when the scrape was taken",
                code="no-time",
                hint="write a line '# time 2026-11-30T12:00:00Z' before each scrape, or give --at TIME for one",
            )
        return self.options.at_s


_HAS_ZONE = re.compile(r"(?:[Zz]|[+-]\d\d:?\d\d)$")


def _parsed(lines: list[bytes]) -> _Series:
    """Return the samples of the metrics that are read, of the others one for each device that they name.

    Raises:
        BadRecord: When a line is not of the exposition format.
    """
    try:
        text = [line.decode() for line in lines]
    except UnicodeDecodeError as error:
        raise BadRecord("the scrape is not UTF-8", code="not-utf8", hint="fetch it again") from error
    if any("\0" in line for line in text):
        raise BadRecord("a NUL byte", code="nul-byte", hint="the text was damaged; fetch it again")
    wanted: list[str] = []
    spare: dict[str, str] = {}
    for line in text:
        if line.startswith(_USED):
            wanted.append(line)
        else:
            found = _UUID.search(line)
            spare.setdefault(found[1] if found else line, line)
    named = {found[1] for line in wanted if (found := _UUID.search(line))}
    wanted += [line for uuid, line in spare.items() if uuid not in named]
    try:
        families = list(text_string_to_metric_families("\n".join(wanted) + "\n"))
    except (ValueError, KeyError, IndexError) as error:
        raise BadRecord(
            f"not in the text format of Prometheus: {error}",
            code="bad-exposition",
            hint="save what the exporter prints as it is",
        ) from error
    return [sample for family in families for sample in family.samples]


def _key(labels: Mapping[str, str]) -> str:
    uuid = name("UUID", labels.get("UUID", ""))
    instance = labels.get("GPU_I_ID")
    return f"{uuid}/{name('GPU_I_ID', instance)}" if instance else uuid


def _device(uuid: str, series: _Series, oddities: list[Odd]) -> Device:
    labels = series[0].labels
    device = Device(uuid=uuid, pci=labels.get("pci_bus_id"), handle=_handle(series))
    seen: set[str] = set()
    for sample in series:
        if sample.name in seen:
            oddities.append(("series-twice", f"{sample.name} of {uuid} stands twice; the first counts"))
            continue
        seen.add(sample.name)
        value = float(sample.value)
        if value in _BLANKS or value != value:  # noqa: PLR0124 - NaN differs from itself
            continue
        _take(device, sample.name, value, oddities)
    return device


def _weigh(devices: Sequence[Device], series: Mapping[str, _Series]) -> None:
    """Say what part of its device each slice is; those of one device stand in one scrape.

    Raises:
        BadRecord: When a profile is not known, or the slices of a device are more than it.
    """
    sliced: dict[str, list[tuple[int, str, Device, Part]]] = {}
    for device in devices:
        labels = series[device.uuid][0].labels
        if profile := labels.get("GPU_I_PROFILE"):
            part = part_of(profile, labels.get("modelName", ""))
            if part is None:
                raise _unknown(
                    device.uuid, f"{shown(profile)} is no MIG profile of {shown(labels.get('modelName', ''))}"
                )
            instance = labels.get("GPU_I_ID", "")
            place = int(instance) if instance.isdecimal() else 0
            sliced.setdefault(labels["UUID"], []).append((place, instance, device, part))
    for uuid, found in sliced.items():
        found.sort(key=itemgetter(0, 1))
        try:
            amounts = apportioned([part for *_, part in found])
        except ValueError as error:
            raise _unknown(uuid, "its slices are more than the device") from error
        for (_, _, device, _), gpus_milli in zip(found, amounts, strict=True):
            device.gpus_milli = gpus_milli


def _unknown(uuid: str, what: str) -> BadRecord:
    return BadRecord(
        f"GPU_I_PROFILE of {uuid}: {what}",
        code="unknown-profile",
        hint="profiles look like 1g.10gb; those that are known stand in docs/sources/kubernetes.md",
    )


def _take(device: Device, metric: str, value: float, oddities: list[Odd]) -> None:
    number = Decimal(repr(value))
    rung, factor = _PERCENTS.get(metric, ("", 0))
    if factor:
        number *= factor
    good, odd = measured(f"{metric} of {device.uuid}", number, _FULL if rung else None)
    if odd is not None:
        oddities.append(odd)
        return
    assert good is not None  # noqa: S101 - without a value there is an oddity
    if rung:
        device.rungs[rung] = good
    elif metric == "DCGM_FI_DEV_FB_USED":
        device.memory_mib = good
    elif metric == "DCGM_FI_DEV_POWER_USAGE":
        device.power_w = good
    elif metric == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":
        device.energy_mj = int(good)
    elif metric == "DCGM_FI_DEV_ROW_REMAP_FAILURE":
        device.remap_failed = bool(good)
    elif metric == "DCGM_FI_DEV_ROW_REMAP_PENDING":
        device.remap_pending = bool(good)
    elif metric == "DCGM_FI_DEV_XID_ERRORS" and good:
        # The gauge keeps its last value until the exporter restarts, and hides a second error of the same code.
        message = f"{device.uuid}: the exporter last saw XID {good}; the kernel log says when"
        oddities.append(("xid-without-time", message))


def _handle(series: _Series) -> str | None:
    """Return what the labels call the run that holds a device; None when runs share it: no sample is of one of them."""
    found = {handle for sample in series if (handle := _handle_of(sample.labels)) is not None}
    return found.pop() if len(found) == 1 else None


def _handle_of(labels: Mapping[str, str]) -> str | None:
    if job := labels.get("hpc_job"):
        return handles.slurm_job(job)
    if uid := labels.get("pod_uid"):
        return handles.pod_uid(uid)
    # A Prometheus that scraped the exporter has put the exporter's own pod into the plain names.
    for prefix in ("exported_", ""):
        if pod := labels.get(f"{prefix}pod"):
            return handles.pod_name(labels.get(f"{prefix}namespace", ""), pod)
    return None


class Dcgm(PieceSource):
    """Source ``dcgm``: what ``curl http://HOST:9400/metrics`` prints."""

    name = "dcgm"
    interpreter = _Scrapes

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every scrape of the file; see ``Source.read``."""
        lines = begun(read_lines(path))
        scrapes = _Scrapes(options)
        pieces = blocks(lines, begins=lambda raw: _TIME.match(raw) is not None)
        none = Refused(
            f"{path_text(path)}: holds no metric of dcgm-exporter",
            hint="its lines look like DCGM_FI_DEV_GPU_UTIL{...} 97; save them with curl HOST:9400/metrics",
        )
        return opened(interpret(path, pieces, scrapes), lambda: None if scrapes.found else none)
