"""Where every run is, also those of which nobody said it. Pure."""

from collections.abc import Iterable

from gpuledger.policy.placement import HostState, Placement, Room
from gpuledger.policy.state import RunId, RunningRun


def place_runs(runs: Iterable[RunningRun], hosts: Iterable[HostState]) -> dict[RunId, Placement]:
    """Return where every run is; where nobody said, where it would fit, in the order of their ids.

    What fits nowhere is spread over what is free, and the rest claims GPUs of the first host twice.
    """
    hosts = sorted(hosts, key=lambda host: host.host)
    found: dict[RunId, Placement] = {}
    unknown = []
    for run in runs:
        if run.placement:
            found[run.id] = run.placement
        else:
            unknown.append(run)
    if not unknown:
        return found
    room = Room(hosts, found.values())
    for run in sorted(unknown, key=lambda r: r.id):
        placement = room.fit(run.gpus_milli) or room.scatter(run.gpus_milli)
        room.take(placement)
        found[run.id] = placement
    return found
