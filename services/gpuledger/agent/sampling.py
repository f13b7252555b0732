"""Snapshots of devices -> one message over the time between them. Pure: time is an argument.

An interval ends when it is long enough, and earlier when a device comes, goes, or is held by another run: within
one message each device is measured throughout and belongs to one run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from gpuledger.agent.driver import Device, Snapshot
from gpuledger.agent.gpm import Shares
from gpuledger.events.telemetry import GpuSample, XidSeen

_MIB = 1 << 20
_HUNDREDTH = Decimal("0.01")

Owned = Mapping[Device, tuple[Snapshot, str | None]]
"""What each device said, and what the host calls the run that held it."""


@dataclass(slots=True)
class _Sums:
    """What a device said so far."""

    uuid: str
    handle: str | None
    util: list[int] = field(default_factory=list)
    shares: list[Shares] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    power: list[int] = field(default_factory=list)
    energy: list[int | None] = field(default_factory=list)
    errors: list[int | None] = field(default_factory=list)

    def add(self, said: Snapshot) -> None:
        for values, value in (
            (self.util, said.gpu_util),
            (self.memory, said.memory_bytes),
            (self.power, said.power_mw),
        ):
            if value is not None:
                values.append(value)
        self.shares.append((said.gr_engine_active, said.sm_active, said.tensor_active))
        self.energy.append(said.energy_mj)
        self.errors.append(said.ecc_uncorrected)

    def sample(self, snapshots: int, xids: list[XidSeen]) -> GpuSample:
        """Return the sample; a measure that failed once is unknown, for a mean of the rest would cover less."""
        energy, errors = _increase(self.energy), _increase(self.errors)
        engine, sms, tensor = map(_share, zip(*self.shares, strict=True))
        return GpuSample(
            uuid=self.uuid,
            handle=self.handle,
            gpu_util=_mean(self.util, snapshots, 1),
            gr_engine_active=engine,
            sm_active=sms,
            tensor_active=tensor,
            memory_mib=_mean(self.memory, snapshots, _MIB),
            power_w=_mean(self.power, snapshots, 1000),
            energy_mj=None if energy is None else Decimal(energy),
            ecc_uncorrected=errors,
            xid=xids or None,
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured over ``[start_s, end_s)``."""

    start_s: int
    end_s: int
    gpus: tuple[GpuSample, ...]


class Sampling:
    """Collects snapshots of one host.

    Args:
        interval_s: How long an interval is, unless something changes.
        silence_s: After a longer time without a snapshot nobody knows what happened in it.
    """

    def __init__(self, interval_s: int, silence_s: int) -> None:
        self._interval_s, self._silence_s = interval_s, silence_s
        self._start_s = self._last_s = 0
        self._sums: dict[Device, _Sums] = {}
        self._snapshots = 0
        self._xids: dict[str, list[XidSeen]] = {}

    def xid(self, uuid: str, seen: XidSeen) -> None:
        """Take in an error; it goes with the next message that tells of the device."""
        self._xids.setdefault(uuid, []).append(seen)

    def add(self, at_s: int, owned: Owned) -> Measured | None:
        """Take in what the devices said at a moment; return what was measured up to it, when that is whole."""
        if self._snapshots and not self._last_s <= at_s <= self._last_s + self._silence_s:
            # A paused process, or a clock that was set: nothing is known between.
            done = self._finished(self._last_s)
            self._begin(at_s, owned)
            return done
        if not self._snapshots:
            self._begin(at_s, owned)
            return None
        holders = {device: sums.handle for device, sums in self._sums.items()}
        if holders != {device: handle for device, (_, handle) in owned.items()}:
            done = self._finished(at_s)
            self._begin(at_s, owned)
            return done
        self._take(at_s, owned)
        # Whole intervals end where the clock shows a multiple: then messages fit buckets.
        if at_s // self._interval_s == self._start_s // self._interval_s:
            return None
        done = self._finished(at_s)
        self._begin(at_s, owned)
        return done

    def finish(self) -> Measured | None:
        """Return what was measured up to the last snapshot, and begin anew."""
        done = self._finished(self._last_s)
        self._snapshots = 0
        self._sums.clear()
        return done

    def _begin(self, at_s: int, owned: Owned) -> None:
        self._start_s, self._snapshots = at_s, 0
        self._sums = {device: _Sums(device.uuid, handle) for device, (_, handle) in owned.items()}
        self._take(at_s, owned)

    def _take(self, at_s: int, owned: Owned) -> None:
        self._last_s = at_s
        self._snapshots += 1
        for device, (said, _) in owned.items():
            self._sums[device].add(said)

    def _finished(self, end_s: int) -> Measured | None:
        if end_s <= self._start_s or not self._sums:
            return None
        gpus = tuple(
            sums.sample(self._snapshots, self._xids.pop(sums.uuid, [])) for sums in self._sums.values()
        )
        return Measured(self._start_s, end_s, gpus)


def _mean(values: list[int], snapshots: int, unit: int) -> Decimal | None:
    if len(values) < snapshots or not values:
        return None
    return (Decimal(sum(values)) / (len(values) * unit)).quantize(_HUNDREDTH)


def _share(values: Sequence[float | None]) -> Decimal | None:
    """Return the mean of shares that are each of the time since the snapshot before; the first is of time before."""
    known = [value for value in values[1:] if value is not None]
    if len(known) < len(values) - 1 or not known:
        return None
    return Decimal(sum(known) / len(known)).quantize(_HUNDREDTH)


def _increase(counter: list[int | None]) -> int | None:
    """Return how far a counter went; None when it is not known throughout, or began anew."""
    known = [value for value in counter if value is not None]
    if len(known) < len(counter) or len(known) < 2 or sorted(known) != known:  # noqa: PLR2004 - two make a difference
        return None
    return known[-1] - known[0]
