"""Readings of devices, one after another -> samples over the time between them.

A driver tells of the moment just past, and of counters since it was loaded. A reading therefore stands for the
time since the one before it. The first of a host stands for one second, and so does the first after a silence:
nobody knows what happened meanwhile.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gpuledger.events.envelope import Event, make
from gpuledger.events.host import HealthKind, HealthObserved
from gpuledger.events.telemetry import GpuSample, Sampled
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.values import Odd, cluster_name, name

SILENCE_S = 300
"""A longer time without a reading is unknown, not what the next reading says."""

FIRST_S = 1
"""What a reading stands for that none came before."""

_SECONDS = 1 << 16
"""So many readings of one pass are known by their second: two hours of eight devices that are read each second. A
clock that goes back, as local time does in autumn, comes to seconds that it showed before."""

_READ = "read"
_TOLD = "told"

_MOST = 10**18
"""No counter of a device comes so far: thirty years of 1 MW in mJ."""


@dataclass(slots=True, kw_only=True)
class Device:
    """What one reading says of one device; what was not measured is None.

    Args:
        uuid: The device, or a slice of it as ``uuid/instance``.
        pci: Where it sits.
        handle: What the host calls the run that holds it.
        rungs: Percent by rung of the utilisation ladder.
        memory_mib: Memory in use.
        power_w: Power.
        energy_mj: Energy since the driver was loaded.
        remap_pending: Whether rows wait for a reset to be remapped.
        remap_failed: Whether rows could not be.
        gpus_milli: How much of a device a slice is.
    """

    uuid: str
    pci: str | None = None
    handle: str | None = None
    rungs: dict[str, Decimal] = field(default_factory=dict)
    memory_mib: Decimal | None = None
    power_w: Decimal | None = None
    energy_mj: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    gpus_milli: int | None = None


class Readings:
    """Turns the readings of one file into samples; one object for one pass.

    Args:
        kind: Who measured, such as ``dcgm``; the default cluster, and the first part of the events' source.
        options: What the person who imports says.
        context: What a fault of an earlier pass remembered, on a retry.

    Raises:
        Refused: When the cluster or host cannot be a name.
    """

    def __init__(
        self, kind: str, options: ImportOptions, context: Mapping[str, object] | None = None
    ) -> None:
        self.cluster = cluster_name(options.cluster or kind)
        self.source = f"{kind}/{self.cluster}"
        self._host = options.host
        try:
            if options.host is not None:
                name("--host", options.host)
        except BadRecord as error:
            raise Refused(error.message, hint=error.hint) from error
        self._read_s: dict[tuple[str, str], int] = _remembered((context or {}).get(_READ))
        self._lost_s = self._read_s
        told = _remembered((context or {}).get(_TOLD))
        self._seconds: dict[tuple[str, str, int], None] = {
            (*key, at_s): None for found in (self._read_s, told) for key, at_s in found.items()
        }
        self._told_twice: tuple[str, str, int] | None = None
        self._energy: dict[tuple[str, str], tuple[int, int]] = {}
        self._troubled: set[tuple[str, str, str]] = set()

    def host(self, told: str | None) -> str:
        """Return the host that a reading is of: what the reading says, else what the person says.

        Raises:
            BadRecord: When neither does.
        """
        if told:
            return name("host", told)
        if self._host is None:
            raise BadRecord(
                "nothing names the host", code="no-host", hint="say which host it is: --host NAME"
            )
        return self._host

    def forget(self) -> None:
        """Begin anew: a reading was lost, and the next must not stand for its time."""
        self._lost_s, self._read_s = self._read_s, {}

    def remember(self) -> dict[str, object]:
        """Return when the readings before the one that was lost were taken: a retry stands for the same time.

        And the second that was told of twice: a retry must not take it for one that was not told of.
        """
        read = [[host, part, at_s] for (host, part), at_s in (self._read_s or self._lost_s).items()]
        return {_READ: read} if self._told_twice is None else {_READ: read, _TOLD: [list(self._told_twice)]}

    def facts(self, host: str, at_s: int, devices: Sequence[Device], part: str = "") -> Facts:
        """Return what follows from a reading of a host, or of the part of a host that has readings of its own.

        Raises:
            BadRecord: When the second is told of already: its samples would be taken for those, and be lost.
        """
        since_s, oddities = self._since(host, part, at_s)
        interval_s = FIRST_S if since_s is None else at_s - since_s
        gpus = [self._sample(host, device, (since_s, at_s), oddities) for device in devices]
        sampled = Sampled(cluster=self.cluster, host=host, interval_s=interval_s, gpus=gpus)
        id_ = "/".join(filter(None, (host, part, str(at_s))))
        facts = [make(id=id_, source=self.source, at_s=at_s - interval_s, data=sampled)]
        for device in devices:
            facts += self._health(host, device, at_s)
        return tuple(facts), oddities

    def _since(self, host: str, part: str, at_s: int) -> tuple[int | None, list[Odd]]:
        """Return when the reading before was, if this one stands for the time since then."""
        before_s = self._read_s.get((host, part))
        if (host, part, at_s) in self._seconds:
            self._told_twice = host, part, at_s
            raise BadRecord(
                f"a second reading of {part or host} in the same second",
                code="same-second",
                hint="read at most once a second, by a clock that is not set back: readings are known by their time",
            )
        if len(self._seconds) >= _SECONDS:
            del self._seconds[next(iter(self._seconds))]
        self._seconds[host, part, at_s] = None
        self._read_s[host, part] = at_s
        if before_s is not None and at_s < before_s:
            return None, [("time-went-back", f"{before_s - at_s} s before the reading above it")]
        if before_s is not None and at_s - before_s > SILENCE_S:
            return None, [("silence", f"{at_s - before_s} s without a reading: unknown, not idle")]
        return before_s, []

    def _sample(
        self, host: str, device: Device, span: tuple[int | None, int], oddities: list[Odd]
    ) -> GpuSample:
        """Return a sample. Energy is that of its own time: a device that the reading before missed has none to tell."""
        energy_mj = None
        if device.energy_mj is not None:
            read_s, before_mj = self._energy.get((host, device.uuid), (None, 0))
            self._energy[host, device.uuid] = span[1], device.energy_mj
            if device.energy_mj < before_mj:
                message = f"{device.uuid}: the energy counter began anew; the interval's energy is unknown"
                oddities.append(("counter-reset", message))
            elif read_s is not None and read_s == span[0]:
                energy_mj = Decimal(device.energy_mj - before_mj)
        return GpuSample(
            uuid=device.uuid,
            handle=device.handle,
            memory_mib=device.memory_mib,
            power_w=device.power_w,
            energy_mj=energy_mj,
            gpus_milli=device.gpus_milli,
            gpu_util=device.rungs.get("gpu_util"),
            gr_engine_active=device.rungs.get("gr_engine_active"),
            sm_active=device.rungs.get("sm_active"),
            tensor_active=device.rungs.get("tensor_active"),
        )

    def _health(self, host: str, device: Device, at_s: int) -> Iterator[tuple[Event, bytes]]:
        """Tell of trouble when it is first seen, and of a clean check once all of it is gone."""
        seen: tuple[tuple[HealthKind, bool | None], ...] = (
            ("remap_failed", device.remap_failed),
            ("remap_pending", device.remap_pending),
        )
        before = {kind for kind, _ in seen if (host, device.uuid, kind) in self._troubled}
        kinds = [kind for kind, present in seen if present and kind not in before]
        gone = {kind for kind, present in seen if kind in before and present is False}
        self._troubled.update((host, device.uuid, kind) for kind in kinds)
        self._troubled.difference_update((host, device.uuid, kind) for kind in gone)
        if before and gone == before and not kinds:
            kinds = ["clean"]
        for kind in kinds:
            observed = HealthObserved(
                cluster=self.cluster, host=host, kind=kind, gpu_uuid=device.uuid, pci=device.pci
            )
            id_ = f"{host}/{device.uuid}/{kind}/{at_s}"
            yield make(id=id_, source=self.source, at_s=at_s, data=observed)


def _remembered(kept: object) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for entry in kept if isinstance(kept, list) else ():
        match entry:
            case [str() as host, str() as part, int() as at_s]:
                found[host, part] = at_s
    return found


def measured(field_: str, value: Decimal, most: int | None = None) -> tuple[Decimal | None, Odd | None]:
    """Return a value that a device can have, or what is odd about one that it cannot: then it was not measured."""
    if value.is_finite() and 0 <= value <= (_MOST if most is None else most):
        return value, None
    return None, ("impossible-value", f"{field_}: {value} cannot be; left out as not measured")
