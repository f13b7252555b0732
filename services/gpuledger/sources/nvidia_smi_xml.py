"""``nvidia-smi -q -x``: a document per reading; a loop (``-l``) prints one after another."""

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.blocks import begun, blocks, opened
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import read_lines
from gpuledger.sources.nvidia_smi import KIND, flag, local_times, number, require_zone, text
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.readings import Device, Readings
from gpuledger.sources.values import Odd, name, shown

_ROOT = "nvidia_smi_log"
_END = f"</{_ROOT}>".encode()

_POWER = (
    "gpu_power_readings/instant_power_draw",
    "gpu_power_readings/average_power_draw",
    "gpu_power_readings/power_draw",
    "power_readings/power_draw",
)
"""Where the power stands, newest drivers first."""


class _Documents(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._times = local_times(options)
        self._readings = Readings(KIND, options, context)
        self.found = False

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return when the readings before were taken."""
        del raw
        return self._readings.remember()

    def translate(self, raw: bytes) -> Facts:
        if f"<{_ROOT}".encode() not in raw:
            if self.found or not raw.strip():
                return (), ()
            raise Refused("holds no document of nvidia-smi", hint="save one with nvidia-smi -q -x")
        self.found = True
        try:
            return self._document(raw)
        except BadRecord:
            self._readings.forget()
            raise

    def _document(self, raw: bytes) -> Facts:
        root = _parsed(raw)
        host = self._readings.host(None)
        oddities: list[Odd] = []
        at_s = self._time(root.findtext("timestamp"), oddities)
        gpus = root.findall("gpu")
        devices = [device for gpu in gpus for device in _devices(gpu, oddities)]
        attached = (root.findtext("attached_gpus") or "").strip()
        if attached.isdecimal() and (attached.lstrip("0") or "0") != str(len(gpus)):
            message = f"attached_gpus: {attached}, but {len(gpus)} are listed; those are taken"
            oddities.append(("gpu-count-differs", message))
        facts, odd = self._readings.facts(host, at_s, devices)
        return facts, [*oddities, *odd]

    def _time(self, written: str | None, oddities: list[Odd]) -> int:
        stamp = text(written)
        if not stamp:
            if self.options.at_s is None:
                raise BadRecord(
                    "timestamp: is missing",
                    code="missing-value",
                    hint="say when it was taken: --at 2026-11-30T12:00:00Z",
                )
            return self.options.at_s
        require_zone(self.options, stamp)
        try:
            local = dt.datetime.strptime(stamp, "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007 - the zone is given apart
        except ValueError as error:
            raise BadRecord(
                f"timestamp: {shown(stamp)} is not a time of nvidia-smi",
                code="not-a-time",
                hint="it looks like: Tue Jul 14 08:12:38 2026",
            ) from error
        at_s, odd = self._times.read("timestamp", local.isoformat(" "))
        if odd is not None:
            oddities.append(odd)
        return at_s


def _parsed(raw: bytes) -> Element:
    try:
        # The text may be cut anywhere; what stands before the document, such as a prompt, is no part of it.
        root: Element = fromstring(raw[raw.find(b"<") :])
    except (ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise BadRecord(
            f"the document cannot be read as XML: {error}",
            code="bad-xml",
            hint="it may be cut short; save it again with nvidia-smi -q -x",
        ) from error
    if root.tag != _ROOT:
        raise BadRecord(f"the document is a {shown(root.tag)}", code="bad-xml", hint="see nvidia-smi -q -x")
    return root


def _devices(gpu: Element, oddities: list[Odd]) -> Iterator[Device]:
    """Yield a device and its MIG slices; of a slice nothing but its memory is told."""
    uuid = name("uuid", text(gpu.findtext("uuid")))
    pci = text(gpu.findtext("pci/pci_bus_id")) or text(gpu.get("id")) or None
    device = Device(
        uuid=uuid,
        pci=pci,
        memory_mib=number(f"{uuid}: memory", gpu.findtext("fb_memory_usage/used"), "MiB", oddities),
        remap_pending=flag(gpu.findtext("remapped_rows/remapped_row_pending")),
        remap_failed=flag(gpu.findtext("remapped_rows/remapped_row_failure")),
    )
    use = number(f"{uuid}: gpu_util", gpu.findtext("utilization/gpu_util"), "%", oddities)
    if use is not None:
        device.rungs["gpu_util"] = use
    power = (number(f"{uuid}: power", gpu.findtext(place), "W", oddities) for place in _POWER)
    device.power_w = next((value for value in power if value is not None), None)
    yield device
    for part in gpu.iterfind("mig_devices/mig_device"):
        instance = "/".join(text(part.findtext(key)) for key in ("gpu_instance_id", "compute_instance_id"))
        memory = number(f"{uuid}/{instance}: memory", part.findtext("fb_memory_usage/used"), "MiB", oddities)
        yield Device(uuid=f"{uuid}/{name('gpu_instance_id', instance)}", pci=pci, memory_mib=memory)


class NvidiaSmiXml(PieceSource):
    """Source ``nvidia-smi-xml``."""

    name = "nvidia-smi-xml"
    interpreter = _Documents

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every document of the file; see ``Source.read``."""
        lines = begun(read_lines(path))
        documents = _Documents(options)
        pieces = blocks(lines, ends=lambda raw: _END in raw)
        none = Refused(
            f"{path_text(path)}: holds no document of nvidia-smi",
            hint="save one with nvidia-smi -q -x",
        )
        return opened(interpret(path, pieces, documents), lambda: None if documents.found else none)
