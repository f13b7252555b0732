"""Simulations of many seeds, played in parallel processes and kept in files: whoever is interrupted goes on from there.

A file is named by what it hangs on: the scenario, world, seed and days, what is set otherwise, and a digest of the
program and its scenarios. So nothing of another program is ever taken for this one's.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import msgspec

import gpuledger
from gpuledger.kernel.survival import Lengths
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.playing import Play, measured, prepare
from gpuledger.simulator.summary import summarise

DECIDES = ("kernel", "policy", "simulator", "warehouse")
"""The packages that a simulation hangs on."""


class Waited(msgspec.Struct, frozen=True):
    """Waits as ``Lengths`` counts them, as rows that JSON can hold."""

    ended: list[tuple[int, int]]
    unended: list[tuple[int, int]]
    late: list[tuple[int, int, bool, int]]

    @classmethod
    def of(cls, lengths: Lengths) -> "Waited":
        late = [(*key, count) for key, count in sorted(lengths.late.items())]
        return cls(sorted(lengths.ended.items()), sorted(lengths.unended.items()), late)

    @property
    def lengths(self) -> Lengths:
        found = Lengths()
        found.ended.update(dict(self.ended))
        found.unended.update(dict(self.unended))
        found.late.update({(entered, length, ended): count for entered, length, ended, count in self.late})
        return found


class Played(msgspec.Struct, frozen=True):
    """One simulation: its report, and the waits of each group, which several seeds pool."""

    told: Simulation
    waits: dict[str, Waited]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which simulation is meant: one of a world, a seed, and what is set otherwise."""

    scenario: str
    world: str
    seed: int
    days: int
    warm_up_days: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def name(self) -> str:
        """Return what its file is called."""
        meant = json.dumps([self.warm_up_days, sorted(self.settings.items()), program()])
        digest = hashlib.sha256(meant.encode()).hexdigest()[:16]
        return f"{self.scenario}-{self.world}-{self.seed}-{self.days}d-{digest}.json"


@cache
def program() -> str:
    """Return a digest of all that a simulation hangs on."""
    root, found = Path(gpuledger.__file__).parent, hashlib.sha256()
    files = [
        path
        for package in DECIDES
        for path in (root / package).rglob("*")
        if path.suffix in {".py", ".yaml", ".csv"}
    ]
    for path in sorted(files):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def play(asked: Asked, kept: Path) -> float:
    """Play one simulation and keep it; return how many seconds that took."""
    meant = prepare(
        Play(
            scenario=asked.scenario,
            world=asked.world,
            seed=asked.seed,
            days=asked.days,
            settings=dict(asked.settings),
        )
    )
    scenario = replace(meant, warm_up_days=asked.warm_up_days)
    began = os.times().elapsed
    measures = measured(scenario, asked.world)
    took_s = os.times().elapsed - began
    told = summarise(measures, scenario, world=asked.world, seed=asked.seed, wall_s=round(took_s, 3))
    waits = {group: Waited.of(lengths) for group, lengths in measures.waits.by_group().items()}
    unfinished = kept.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(msgspec.json.encode(Played(told, waits)))
    unfinished.replace(kept)
    return took_s


def played(every: Sequence[Asked], folder: Path, *, processes: int | None = None) -> Iterator[Played]:
    """Play what is not kept yet, and yield all, in the order of what was asked."""
    missing = [one for one in every if not (folder / one.name()).exists()]
    print(f"{len(every)} simulations, {len(every) - len(missing)} of them kept from before in {folder}")
    with ProcessPoolExecutor(processes or os.cpu_count()) as pool:
        at_work = {pool.submit(play, one, folder / one.name()): one for one in missing}
        for place, done in enumerate(as_completed(at_work), 1):
            one = at_work[done]
            print(
                f"  {place} of {len(missing)}: {one.world}, seed {one.seed}: {done.result():.0f} s",
                flush=True,
            )
    for one in every:
        yield msgspec.json.decode((folder / one.name()).read_bytes(), type=Played)
