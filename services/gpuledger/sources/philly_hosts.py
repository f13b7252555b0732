"""Machines of the Philly trace and the measured use of their GPUs: ``cluster_machine_list`` and ``cluster_gpu_util``.

``NA`` is a GPU that was offline: nothing was measured on it, which is not 0. A machine none of whose GPUs could be
measured was offline itself, from that minute until the next in which one could.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from gpuledger.events.envelope import Event, make
from gpuledger.events.host import Registered, StateChanged
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.lines import Broken, Line, each_line
from gpuledger.sources.pacific import with_offset
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.table import (
    Record,
    Table,
    TableSource,
    Translator,
    check_header,
    open_table,
    translate_table,
)
from gpuledger.sources.values import PART_LIMIT_BYTES, LocalTimes, cluster_name, gpu_count, name, percent

NAME = "philly-json"
MODEL = "unknown"
"""The GPU model: the trace tells the memory of a GPU, which is no model."""

INTERVAL_S = 60
_ENDS = (b",", b"\r")
_OFFLINE = "NA"
_REASON = "offline"
_GPUS = tuple(f"gpu{number}_util" for number in range(8))


class _Philly(Translator):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self.cluster = cluster_name(options.cluster or NAME)
        self.source = f"trace/philly-json/{self.cluster}"
        self.times = LocalTimes(options.timezone)


class _Use(_Philly):
    required = ("time", "machineId", *_GPUS)

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._offline: dict[str, int] = {}
        """How many GPUs of a machine were offline when it was last seen."""

    def translate(self, record: Record) -> Facts:
        values = record.values
        machine = name("machineId", values["machineId"], limit_bytes=PART_LIMIT_BYTES)
        at_s, doubt = self.times.read("time", with_offset(values["time"]))
        told = {column.removesuffix("_util"): value for column in _GPUS if (value := values[column])}
        if not told:
            raise BadRecord(
                "gpu0_util: no GPU of the machine has a value",
                code="missing-value",
                hint="write NA for a GPU that was offline, and leave out machines without any",
            )
        measured = [
            GpuSample(uuid=f"{machine}/{gpu}", gpu_util=percent(f"{gpu}_util", value))
            for gpu, value in told.items()
            if value != _OFFLINE
        ]
        before, offline = self._offline.get(machine, 0), len(told) - len(measured)
        self._offline[machine] = offline
        events: list[tuple[Event, bytes]] = []
        if measured:
            sample = Sampled(cluster=self.cluster, host=machine, interval_s=INTERVAL_S, gpus=measured)
            events.append(make(id=f"{machine}/{at_s}/sampled", source=self.source, at_s=at_s, data=sample))
        if not measured or before == len(told):
            events.append(self._state(machine, at_s, len(told), is_offline=not measured))
        oddities = [doubt] if doubt else []
        if offline > before:
            message = f"{machine}: {offline} of {len(told)} GPUs could not be measured from then on"
            oddities.append(("gpu-offline", message))
        return tuple(events), oddities

    def _state(self, machine: str, at_s: int, gpus: int, *, is_offline: bool) -> tuple[Event, bytes]:
        changed = StateChanged(
            cluster=self.cluster,
            host=machine,
            gpus=gpus,
            gpu_model=MODEL,
            state="unhealthy" if is_offline else "healthy",
            reason=_REASON if is_offline else None,
        )
        return make(id=f"host/{machine}/{at_s}/state", source=self.source, at_s=at_s, data=changed)


class _Machines(_Philly):
    required = ("machineId", "number of GPUs", "single GPU mem")

    def translate(self, record: Record) -> Facts:
        values = record.values
        machine = name("machineId", values["machineId"], limit_bytes=PART_LIMIT_BYTES)
        gpus = gpu_count("number of GPUs", values["number of GPUs"].strip())
        if gpus == 0:
            return (), ()  # a host without GPUs is no part of the inventory
        node = Registered(cluster=self.cluster, host=machine, gpus=gpus, gpu_model=MODEL)
        return (make(id=f"host/{machine}/registered", source=self.source, at_s=0, data=node),), ()


class PhillyHosts(TableSource):
    """The tables beside ``cluster_job_log``; part of the source ``philly-json``."""

    name = NAME
    kinds = (_Use, _Machines)

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every row of the file; see ``Source.read``. A comma at the end of a row is none of its fields."""
        table = open_table(path)
        header = tuple(column.strip() for column in table.header)
        table = dataclasses.replace(table, header=header[:-1] if header[-1:] == ("",) else header)
        kind = self.kind(table.header)
        translator = kind(options)
        check_header(table, kind)
        return translate_table(dataclasses.replace(table, lines=_trimmed(table)), translator)


def _trimmed(table: Table) -> Iterator[Line | Broken]:
    for line in each_line(table.lines):
        if line.raw.endswith(_ENDS) and isinstance(line, Line):
            raw = line.raw.rstrip(b"\r")
            if raw.endswith(b",") and raw.count(b",") == len(table.header):
                yield replace(line, raw=raw[:-1])
                continue
        yield line
