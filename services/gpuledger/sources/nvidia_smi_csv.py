"""``nvidia-smi --query-gpu=... --format=csv``: one row per device and reading, with units or without."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.blocks import opened
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.nvidia_smi import KIND, flag, local_times, number, require_zone, text
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.readings import Device, Readings
from gpuledger.sources.table import Record, Table, Translator, open_table, retry_row, translate_table
from gpuledger.sources.values import Odd, name, shown

_UUID = ("uuid", "gpu_uuid")
_PCI = ("pci.bus_id", "gpu_bus_id")
_POWER = ("power.draw.instant", "power.draw.average", "power.draw")
_READ = (
    "timestamp",
    *_UUID,
    *_PCI,
    "utilization.gpu",
    "memory.used",
    *_POWER,
    "remapped_rows.pending",
    "remapped_rows.failure",
)


class NvidiaSmiCsv:
    """Source ``nvidia-smi-csv``: any columns with uuid and timestamp; what says nothing of use is passed over."""

    name = "nvidia-smi-csv"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every row of the file; see ``Source.read``."""
        table = _checked(open_table(path))
        translator = _Rows(options)
        return opened(translate_table(table, translator))

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        return retry_row(_Rows, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


def _checked(table: Table) -> Table:
    """Return the table with its columns as the tool calls them, without units.

    Raises:
        Refused: When it names no device, or a column twice: then it is no such table, or has no header.
    """
    header = tuple(column.strip() for column in table.header)
    names = [column.partition(" [")[0] for column in header]
    if not any(column in names for column in _UUID) or len(set(names)) != len(names):
        raise Refused(
            f"{path_text(table.path)}:1: is no header of nvidia-smi with a column uuid",
            hint="nvidia-smi --query-gpu=timestamp,uuid,utilization.gpu,memory.used,power.draw --format=csv"
            " (with its header)",
        )
    return replace(table, header=header)


class _Rows(Translator):
    required = ("uuid",)

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._times = local_times(options)
        self._readings = Readings(KIND, options, context)
        self._columns: Mapping[str, str] | None = None

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        """Return when the readings before were taken."""
        return {**super().remember(values), **self._readings.remember()}

    def lose(self) -> None:
        """Begin anew, with every device: of a row that is lost it may not be known which it was of."""
        self._readings.forget()

    def translate(self, record: Record) -> Facts:
        if self._columns is None:
            self._columns = _wanted(record.values)
        cells = {key: record.values[column].strip() for key, column in self._columns.items()}
        oddities: list[Odd] = []
        host = self._readings.host(None)
        uuid = name("uuid", text(_first(cells, _UUID)))
        at_s = self._time(cells.get("timestamp"), oddities)

        def value(key: str, unit: str) -> Decimal | None:
            written = (self._columns or {}).get(key, "").partition(" [")[2].rstrip("]")
            if written not in {"", unit}:
                oddities.append(("unknown-value", f"{key}: is in {shown(written)}, not {unit}; not measured"))
                return None
            return number(f"{uuid}: {key}", cells.get(key), unit, oddities)

        use = value("utilization.gpu", "%")
        power = (value(key, "W") for key in _POWER if key in cells)
        device = Device(
            uuid=uuid,
            pci=text(_first(cells, _PCI)) or None,
            rungs={} if use is None else {"gpu_util": use},
            memory_mib=value("memory.used", "MiB"),
            power_w=next((found for found in power if found is not None), None),
            remap_pending=flag(cells.get("remapped_rows.pending")),
            remap_failed=flag(cells.get("remapped_rows.failure")),
        )
        facts, odd = self._readings.facts(host, at_s, [device], uuid)
        return facts, [*oddities, *odd]

    def _time(self, written: str | None, oddities: list[Odd]) -> int:
        stamp = text(written)
        if not stamp:
            if self.options.at_s is None:
                raise BadRecord(
                    "timestamp: is missing",
                    code="no-time",
                    hint="query timestamp too, or say when it was: --at 2026-11-30T12:00:00Z",
                )
            return self.options.at_s
        require_zone(self.options, stamp)
        at_s, odd = self._times.read("timestamp", stamp.replace("/", "-"))
        if odd is not None:
            oddities.append(odd)
        return at_s


def _wanted(values: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are read: what the tool calls them -> as they stand in the header, with units."""
    named = {column.partition(" [")[0]: column for column in values}
    return {key: named[key] for key in _READ if key in named}


def _first(cells: Mapping[str, str], keys: tuple[str, ...]) -> str | None:
    return next((cells[key] for key in keys if key in cells), None)
