"""XID errors in logs of the kernel: what the NVIDIA driver reports, with its time.

The text of an error is not kept: one error of one device in one second is one observation, whichever log tells
of it, and however often.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuledger.events.envelope import make
from gpuledger.events.host import HealthObserved
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.blocks import begun, opened
from gpuledger.sources.files import path_text
from gpuledger.sources.lines import read_lines
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.readings import Readings
from gpuledger.sources.values import LocalTimes, Odd, instant_in_bounds, shown

KIND = "kernel"
"""The first part of the events' source, and the default cluster: every log of one kernel says the same."""

CODE_LIMIT = 1000
"""The driver's catalogue ends far below it."""

_MARK = b"NVRM: Xid"
_PCI = r"(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})"
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?" + _PCI + r"(?:\.[0-7])?\): (?P<code>\d{1,9})\b")
_DEVICE = re.compile(r"NVRM: GPU at PCI:" + _PCI + r"(?:\.[0-7])?: (?P<uuid>GPU-[\w-]{36})")

_FACILITY = r"(?:\w+ *: *\w+ *: *)?"
_ISO = re.compile(
    _FACILITY + r"(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?P<zone>Z|[+-]\d\d:?\d\d)?)"
    r"(?: (?P<host>[\w.-]+) kernel:)? "
)
_CLOCK = re.compile(
    _FACILITY + r"\[(?:\w{3} )?(?P<month>\w{3}) +(?P<day>\d{1,2}) (?:(?P<early>\d{4}) )?"
    r"(?P<clock>\d\d:\d\d:\d\d)(?: (?P<late>\d{4}))?\]"
)
_BOOT = re.compile(_FACILITY + r"\[ *(?P<at>\d{1,12})\.\d{1,9}\]")
_RING = re.compile(r"\d+,\d+,(?P<at>\d{1,18}),[^;]*;")
_YEARLESS = re.compile(r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d ")
_FABRIC = re.compile(r"\[[^\]]+\] \[[A-Z]+\] \[tid \d+\] ")
"""The Fabric Manager's own log: it may quote the driver, and holds nothing else that is read."""

_TIMED = (_ISO, _CLOCK, _BOOT, _RING, _YEARLESS)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class _Lines(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        self._times = LocalTimes(options.timezone)
        self._readings = Readings(KIND, options)
        self._uuids: dict[str, str] = {}
        kept = (context or {}).get("devices")
        if isinstance(kept, dict):
            self._uuids |= {k: v for k, v in kept.items() if isinstance(k, str) and isinstance(v, str)}
        self.found = False

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return the names of devices that lines before told of."""
        del raw
        return {"devices": dict(self._uuids)} if self._uuids else {}

    def translate(self, raw: bytes) -> Facts:
        if _MARK not in raw:
            self._look(raw)
            return (), ()
        line = raw.decode("utf-8", "replace")
        error = _XID.search(line)
        if error is None:
            raise BadRecord(
                f"{shown(line[line.find('NVRM') :])} is no XID with device and code",
                code="bad-xid",
                hint="such a line looks like: NVRM: Xid (PCI:0000:9b:00): 119, ...",
            )
        self.found = True
        code = int(error["code"])
        if not 0 < code < CODE_LIMIT:
            raise BadRecord(
                f"XID {code} is not in the driver's catalogue", code="unknown-xid", hint="look at the line"
            )
        at_s, odd, host = self._when(line)
        pci = bus_id(error["pci"])
        observed = HealthObserved(
            cluster=self._readings.cluster,
            host=self._readings.host(host),
            kind="xid",
            gpu_uuid=self._uuids.get(pci),
            pci=pci,
            code=code,
        )
        id_ = f"{observed.host}/{pci}/xid{code}/{at_s}"
        return (make(id=id_, source=self._readings.source, at_s=at_s, data=observed),), [odd] if odd else []

    def _look(self, raw: bytes) -> None:
        """Keep the name of a device that a line tells of, and whether the file is a log at all."""
        if b"NVRM: GPU at" in raw and (named := _DEVICE.search(raw.decode("utf-8", "replace"))):
            self._uuids[bus_id(named["pci"])] = named["uuid"]
        if not self.found:
            line = raw[:80].decode("utf-8", "replace")
            self.found = not _FABRIC.match(line) and any(pattern.match(line) for pattern in _TIMED)

    def _when(self, line: str) -> tuple[int, Odd | None, str | None]:
        """Return when a line was written, what is odd about that, and on which host if it says so."""
        if (found := _ISO.match(line)) is not None:
            return *self._wall(found["at"].replace(",", "."), has_zone=found["zone"] is not None), found[
                "host"
            ]
        if (found := _CLOCK.match(line)) is not None and (year := found["early"] or found["late"]):
            month = _MONTHS.index(found["month"]) + 1 if found["month"] in _MONTHS else 0
            text = f"{year}-{month:02}-{int(found['day']):02} {found['clock']}"
            return *self._wall(text, has_zone=False), None
        found = _RING.match(line) or _BOOT.match(line)
        if found is None:
            code = "no-year" if _YEARLESS.match(line) else "no-log-time"
            raise BadRecord(
                "the line does not say when it was written",
                code=code,
                hint="save the log with dmesg --time-format iso, or journalctl -k -o short-iso",
            )
        if self.options.at_s is None:
            raise BadRecord(
                f"{shown(found[0])} counts from the boot, which nobody told",
                code="no-boot-time",
                hint="say when the host booted: --at $(uptime -s, with its zone), or save dmesg --time-format iso",
            )
        since_s = int(found["at"]) // (1_000_000 if found.re is _RING else 1)
        return instant_in_bounds("time", self.options.at_s + since_s, found["at"]), None, None

    def _wall(self, text: str, *, has_zone: bool) -> tuple[int, Odd | None]:
        if not has_zone and self.options.timezone is None:
            raise BadRecord(
                f"{shown(text)} is a local time, and nothing says of which zone",
                code="no-zone",
                hint="give the zone of the host: --tz UTC, or --tz Europe/Berlin",
            )
        return self._times.read("time", text)


def bus_id(short: str) -> str:
    """Return a PCI address as NVML writes it: ``0000:9b:00`` -> ``00000000:9B:00.0``."""
    domain, bus, slot = short.upper().split(":")
    return f"{domain:0>8}:{bus}:{slot}.0"


class XidLog(PieceSource):
    """Source ``xid-log``: dmesg, journalctl -k -o short-iso, /dev/kmsg, and logs of services that quote them."""

    name = "xid-log"
    interpreter = _Lines

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every line with an XID; see ``Source.read``. A log may hold none."""
        raw_lines = begun(read_lines(path))
        lines = _Lines(options)
        none = Refused(
            f"{path_text(path)}: holds no line of a kernel log, and no XID that another log quotes",
            hint="save one with dmesg --time-format iso, or journalctl -k -o short-iso",
        )
        return opened(interpret(path, raw_lines, lines), lambda: None if lines.found else none)
