"""The agent's loop: wake up, read the devices, put into the spool what follows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuledger.agent.checking import Health
from gpuledger.agent.driver import Device, DeviceLost, Driver, Snapshot, Xid
from gpuledger.agent.owners import Owners
from gpuledger.agent.sampling import Measured, Sampling
from gpuledger.agent.spool import Lost, Spool, Spooled
from gpuledger.events.envelope import encode, key_of
from gpuledger.events.heartbeat import Gap, Heartbeat
from gpuledger.events.host import HealthKind, HealthObserved
from gpuledger.events.registry import Fact
from gpuledger.events.telemetry import Sampled, XidSeen
from gpuledger.kernel.clock import Clock, instant, iso, seconds
from gpuledger.kernel.errors import Unavailable
from gpuledger.streams.topics import SCHEDULER_EVENTS, TELEMETRY

KIND = "nvml"
"""The first part of the events' source."""


LOOK_AGAIN_S = 60
"""How often the driver is opened anew while it cannot reach a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How an agent works.

    Args:
        cluster: The cluster.
        host: The host, as the inventory calls it.
        sample_s: How often devices are read.
        interval_s: How long a message covers.
        heartbeat_s: How often the agent says that it lives.
    """

    cluster: str
    host: str
    sample_s: int = 5
    interval_s: int = 60
    heartbeat_s: int = 900


@dataclass(frozen=True, slots=True)
class Parts:
    """What an agent is made of."""

    driver: Driver
    owners: Owners
    spool: Spool
    health: Health
    clock: Clock
    sleep: Callable[[float], None]
    note: Callable[[str], None]


class Sampler:
    """One host's agent, without its publishing."""

    def __init__(self, config: Config, parts: Parts) -> None:
        self._config, self._parts = config, parts
        self._source = f"{KIND}/{config.cluster}"
        self._sampling = Sampling(config.interval_s, 3 * config.sample_s)
        self._known: dict[str, Device] = {}
        self._beat_s: int | None = None
        self._looked_s = 0
        self._is_deaf = self._is_forgetful = False

    def run(self, stopped: Callable[[], bool]) -> None:
        """Work until told to stop; whatever the driver does, the loop goes on."""
        while not stopped():
            self.step()
            self.pause()
        self.finish()

    def step(self) -> None:
        """Read the devices once, and spool what follows."""
        at_s = self._now()
        owned, found = {}, []
        try:
            devices = self._parts.driver.devices()
            self._parts.owners.look()
            for device in self._expected(devices):
                said = self._read(device, devices)
                found += [(device, kind) for kind in self._parts.health.look(device, said)]
                if said is not None:
                    owned[device] = said, self._parts.owners.handle(device, said.pids)
        except Unavailable as error:
            self._deafen(error)
            return
        if self._is_deaf:
            self._is_deaf = False
            self._parts.note("the driver answers again")
        for device, kind in found:
            self._observe(at_s, device, kind)
        self._look_again(at_s, lost=len(owned) < len(self._known))
        self._spool_measured(self._sampling.add(at_s, owned))
        self._beat(at_s)
        self._remember()

    def pause(self) -> None:
        """Wait for the next reading; errors that come meanwhile are told with their time."""
        left_s = float(self._config.sample_s)
        if self._is_deaf:
            self._parts.sleep(left_s)
            return
        began = self._parts.clock.now()
        while left_s > 0:
            try:
                xids = self._parts.driver.wait(left_s)
            except Unavailable as error:
                self._deafen(error)
                return
            if not xids:
                return
            self._tell(xids)
            left_s = self._config.sample_s - (self._parts.clock.now() - began).total_seconds()

    def finish(self) -> None:
        """Spool what was measured so far, and release the driver."""
        self._spool_measured(self._sampling.finish())
        self._parts.driver.close()

    def _now(self) -> int:
        return seconds(self._parts.clock.now())

    def _expected(self, devices: Sequence[Device]) -> list[Device]:
        """Return the devices that the driver lists, and those that it listed before and no longer does."""
        self._known.update((device.uuid, device) for device in devices)
        return list(self._known.values())

    def _remember(self) -> None:
        """Keep what is known of the devices; a disk that takes nothing costs a clean check after a restart at most."""
        try:
            self._parts.health.save()
            self._is_forgetful = False
        except Unavailable as error:
            if not self._is_forgetful:
                self._parts.note(error.message)
            self._is_forgetful = True

    def _look_again(self, at_s: int, *, lost: bool) -> None:
        """Open the driver anew now and then while a device is lost: only then it can be seen to be back."""
        if not lost:
            self._looked_s = at_s
        elif at_s - self._looked_s >= LOOK_AGAIN_S:
            self._looked_s = at_s
            self._parts.driver.close()

    def _read(self, device: Device, listed: Sequence[Device]) -> Snapshot | None:
        """Return what a device says, or None when it cannot be reached."""
        if device not in listed:
            return None
        try:
            return self._parts.driver.read(device)
        except DeviceLost:
            return None

    def _deafen(self, error: Unavailable) -> None:
        """Let go of a driver that does not answer; what was measured until then is told."""
        if not self._is_deaf:
            self._parts.note(f"{error.message}. {error.hint}")
        self._is_deaf = True
        self._spool_measured(self._sampling.finish())
        self._parts.driver.close()
        self._beat(self._now())

    def _tell(self, xids: Sequence[Xid]) -> None:
        now = self._parts.clock.now()
        for device, code in xids:
            self._sampling.xid(device.uuid, XidSeen(code=code, at=iso(now)))
            self._observe(seconds(now), device, "xid", code)

    def _observe(self, at_s: int, device: Device, kind: HealthKind, code: int | None = None) -> None:
        fact = HealthObserved(
            cluster=self._config.cluster,
            host=self._config.host,
            kind=kind,
            gpu_uuid=device.uuid,
            pci=device.pci,
            code=code,
        )
        self._put(f"{fact.host}/{device.uuid}/{kind}{code or ''}/{at_s}", at_s, at_s, fact)

    def _spool_measured(self, measured: Measured | None) -> None:
        if measured is not None:
            config, length_s = self._config, measured.end_s - measured.start_s
            fact = Sampled(
                cluster=config.cluster, host=config.host, interval_s=length_s, gpus=list(measured.gpus)
            )
            id_ = f"{config.host}/{measured.start_s}/{measured.end_s}"
            self._put(id_, measured.start_s, measured.end_s, fact)

    def _beat(self, at_s: int) -> None:
        """Say that the agent lives, and what it lost; at once when there is a loss to tell and the broker takes it.

        While it does not, each further message would push out an older one that is worth more.
        """
        lost = self._parts.spool.lost()
        is_due = self._beat_s is None or not 0 <= at_s - self._beat_s < self._config.heartbeat_s
        if not is_due and (lost is None or not self._parts.spool.is_empty()):
            return
        self._beat_s = at_s
        gaps = [] if lost is None else [_gap(lost)]
        fact = Heartbeat(cluster=self._config.cluster, host=self._config.host, gaps=gaps or None)
        self._put(f"{self._config.host}/alive/{at_s}", at_s, at_s, fact, lost)

    def _put(self, id_: str, start_s: int, end_s: int, fact: Fact, told: Lost | None = None) -> None:
        value = encode(id=id_, source=self._source, at_s=start_s, data=fact)
        topic = TELEMETRY if isinstance(fact, Sampled) else SCHEDULER_EVENTS
        own = Lost(start_s=start_s, end_s=end_s, messages=1)
        self._parts.spool.put(
            Spooled(
                topic=topic,
                key=key_of(fact),
                value=value.decode(),
                if_lost=own if told is None else told + own,
            ),
            told,
        )


def _gap(lost: Lost) -> Gap:
    return Gap(
        start=instant(lost.start_s), end=instant(lost.end_s), messages=lost.messages, reason="spool-full"
    )
