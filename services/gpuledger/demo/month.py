"""The demo's month: a simulated institute, told to a ledger as its scheduler would have told it. Always the same."""

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuledger.demo import DATA
from gpuledger.events.envelope import make
from gpuledger.events.host import StateChanged
from gpuledger.events.workload import Ended
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import GpuledgerError
from gpuledger.simulator import playing

SCENARIO = DATA / "institute.yaml"
CLUSTER = "institute"
WORLD = "gpuledger"
PERIOD = "2026-01"
"""The budget period that lies in the month as a whole."""

SICK_HOST = "institute-0004"
SICK_REASON = "xid-79"
SICK_BEFORE_END_S = 3 * 3600
TARGETS = {
    "availability_target_permille": 980,
    "occupancy_target_permille": 900,
    "impact_target_permille": 950,
}
"""What the institute hopes for of its layers; nothing measures how busy its GPUs are."""

BUSY_S = 1_769_680_800
"""2026-01-29T10:00:00Z: a working morning near the end, of which a cycle is told."""

_SOURCE = "gpuledger/demo"


@dataclass(frozen=True, slots=True)
class Preempted:
    """A workload that had to leave.

    Args:
        workload: Its name.
        account: Whose it was.
        user: Who submitted it.
        at_s: When it left.
        waited_s: How long it waited until it went on.
    """

    workload: str
    account: str
    user: str
    at_s: int
    waited_s: int


@dataclass(frozen=True, slots=True)
class Month:
    """What was written.

    Args:
        end_s: When it ends, in seconds since the epoch.
        events: How many events there are.
        preempted: Workloads that had to leave, went on later and came to their end, in the order in which they went on.
    """

    end_s: int
    events: int
    preempted: tuple[Preempted, ...]


def write(path: Path, watch: Callable[[int], None] | None = None) -> None:
    """Simulate the month and write it as events, one on each line.

    What goes on when the simulation ends is ended there: it is a month of the past.

    Args:
        path: The file.
        watch: Told the simulated instant now and then.
    """
    scenario = playing.prepare(playing.Play(scenario=str(SCENARIO), world=WORLD))
    playing.run_prepared(scenario, WORLD, watch=watch, events=path)
    closing = list(_closing(_seen(path), scenario.end_s))
    with path.open("ab") as file:
        file.writelines(closing)


def read(path: Path) -> Month:
    """Return what a file that was written holds."""
    seen = _seen(path)
    over = tuple(one for one in seen.preempted if one.workload in seen.completed)
    return Month(seen.newest_s, seen.count, over)


@contextmanager
def written_meanwhile(path: Path) -> Iterator[Callable[[], Month]]:
    """Have the month written by a process of its own, on another core; yield what waits for it.

    Raises:
        GpuledgerError: From the wait, when the process failed.
    """
    process = subprocess.Popen([sys.executable, "-m", __name__, str(path)])

    def wait() -> Month:
        if status := process.wait():
            raise GpuledgerError(
                f"the simulation of the month ended with exit status {status}",
                hint="its messages stand above; gpuledger demo tries again",
            )
        return read(path)

    try:
        yield wait
    finally:
        process.kill()
        process.wait()


def _seen(path: Path) -> "_Seen":
    seen = _Seen()
    with path.open("rb") as file:
        for line in file:
            seen.take(json.loads(line))
    return seen


class _Seen:
    """What events say of workloads, taken one after the other in order of time."""

    def __init__(self) -> None:
        self.count = self.newest_s = 0
        self.asked: dict[str, tuple[str, str]] = {}
        """Workload that is not over -> (account, user)."""
        self.running: dict[str, str] = {}
        """Workload that runs -> its run."""
        self.preempted: list[Preempted] = []
        self.left: dict[str, int] = {}
        """Workload that was preempted and has not gone on -> when that was."""
        self.completed: set[str] = set()

    def take(self, event: Mapping[str, object]) -> None:
        data = event["data"]
        assert isinstance(data, dict)  # noqa: S101 - as the simulator writes it
        self.count += 1
        self.newest_s = max(self.newest_s, _seconds(str(event["time"])))
        kind, name = str(event["type"]).removeprefix("org.gpuledger."), str(data.get("workload"))
        match kind:
            case "workload.submitted.v1":
                self.asked[name] = (data["account"], data["user"])
            case "workload.started.v1":
                self.running[name] = data["run"]
                if (left_s := self.left.pop(name, None)) is not None:
                    account, user = self.asked[name]
                    waited_s = _seconds(str(event["time"])) - left_s
                    self.preempted.append(Preempted(name, account, user, left_s, waited_s))
            case "workload.requeued.v1":
                self.running.pop(name, None)
            case "workload.preempted.v1":
                self.running.pop(name, None)
                self.left[name] = _seconds(str(event["time"]))
            case "workload.ended.v1":
                self.running.pop(name, None)
                self.asked.pop(name, None)
                if data["reason"] == "completed":
                    self.completed.add(name)
            case _:
                pass


def _closing(seen: _Seen, end_s: int) -> Iterator[bytes]:
    """Yield the end of what goes on or waits, and the fault of a host shortly before."""
    yield _line(
        f"{SICK_HOST} is sick",
        end_s - SICK_BEFORE_END_S,
        StateChanged(
            cluster=CLUSTER, host=SICK_HOST, gpus=8, gpu_model="h100", state="unhealthy", reason=SICK_REASON
        ),
    )
    for name in sorted(seen.asked):
        ended = Ended(cluster=CLUSTER, workload=name, run=seen.running.get(name), reason="cancelled")
        yield _line(f"{name} ends with the month", end_s, ended)


def _line(id_: str, at_s: int, data: StateChanged | Ended) -> bytes:
    return make(id=id_, source=_SOURCE, at_s=at_s, data=data)[1] + b"\n"


def _seconds(text: str) -> int:
    return seconds(dt.datetime.fromisoformat(text))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
