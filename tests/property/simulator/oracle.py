"""The same measures second by second, in arrays with a place for every second; shares no code with the product."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuledger.simulator.facts import (
    Cancelled,
    Fact,
    HostChanged,
    Left,
    Reserved,
    Started,
    Submitted,
    UserAsked,
)
from gpuledger.simulator.scenario import Scenario

HOUR_S = 3_600
Seconds = npt.NDArray[np.int64]


class Oracle:
    """Fills arrays over ``[start_s, end_s)`` and sums what lies in the window."""

    def __init__(self, facts: Sequence[Fact], scenario: Scenario) -> None:
        self.scenario, self.facts = scenario, facts
        self.length = scenario.end_s - scenario.start_s
        self.skip = scenario.measured_from_s - scenario.start_s
        self.jobs = {f.job.job: f.job for f in facts if isinstance(f, Submitted)}
        self.runs = self._runs()
        self.waits = self._waits()
        self.held = {h.host: self._zeros() for h in scenario.hosts}
        for run in self.runs:
            for host, milli in run["placement"].items():
                self.held[host][run["from"] : run["to"]] += milli
        self.condition = self._conditions()
        self.kept = self._kept()

    def _zeros(self) -> Seconds:
        return np.zeros(self.length, dtype=np.int64)

    def _at(self, fact: Fact) -> int:
        return fact.at_s - self.scenario.start_s

    def _runs(self) -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = []
        for fact in self.facts:
            if isinstance(fact, Started):
                runs.append(
                    {"job": fact.job, "from": self._at(fact), "to": self.length, "placement": fact.placement,
                     "class": fact.klass, "left": None}
                )  # fmt: skip
            elif isinstance(fact, Left):
                (run,) = [r for r in runs if r["job"] == fact.job and r["left"] is None]
                run.update(to=self._at(fact), left=fact)
        return runs

    def _waits(self) -> list[dict[str, Any]]:
        waits: list[dict[str, Any]] = []
        for fact in self.facts:
            match fact:
                case Submitted():
                    waits.append(
                        {"job": fact.job.job, "from": self._at(fact), "to": None, "end": None, "again": False}
                    )
                case Left(requeued=True):
                    waits.append(
                        {"job": fact.job, "from": self._at(fact), "to": None, "end": None, "again": True}
                    )
                case Started() | Cancelled():
                    (wait,) = [w for w in waits if w["job"] == fact.job and w["to"] is None]
                    wait.update(to=self._at(fact), end=type(fact))
        for wait in waits:
            if wait["to"] is None:
                wait["to"] = self.length
        return waits

    def _conditions(self) -> dict[str, Seconds]:
        """0 healthy, 1 draining, 2 down after a fault, 3 down for a repair."""
        found = {h.host: self._zeros() for h in self.scenario.hosts}
        for fact in self.facts:
            if isinstance(fact, HostChanged):
                code = {"healthy": 0, "draining": 1, "down": 3 if fact.planned else 2}[fact.condition]
                found[fact.host][self._at(fact) :] = code
        return found

    def _kept(self) -> dict[str, Seconds]:
        found = {h.host: self._zeros() for h in self.scenario.hosts}
        for fact in self.facts:
            if isinstance(fact, Reserved):
                for host, seconds in found.items():
                    seconds[self._at(fact) :] = fact.placement.get(host, 0)
        return found

    def partition(self) -> dict[str, int]:
        sums = Counter[str]()
        for spec in self.scenario.hosts:
            room = spec.gpus_milli - self.held[spec.host]
            condition = self.condition[spec.host]
            kept = np.minimum(self.kept[spec.host], room)
            for name, seconds in (
                ("unhealthy", room * (condition == 2)),
                ("maintenance", room * ((condition == 1) | (condition == 3))),
                ("reserved", kept * (condition == 0)),
                ("free", (room - kept) * (condition == 0)),
            ):
                sums[name] += int(seconds[self.skip :].sum())
        for run in self.runs:
            seconds = max(run["to"] - max(run["from"], self.skip), 0)
            sums[run["class"]] += seconds * sum(run["placement"].values())
        return dict(sums)

    def healthy(self) -> Seconds:
        whole = self._zeros()
        for spec in self.scenario.hosts:
            condition, held = self.condition[spec.host], self.held[spec.host]
            whole += np.where(condition == 0, spec.gpus_milli, np.where(condition == 2, 0, held))
        return whole

    def _hourly(self, seconds: Seconds) -> list[int]:
        return [int(n) for n in seconds[self.skip :].reshape(-1, HOUR_S).sum(axis=1)]

    def entitled(self) -> dict[str, list[int]]:
        accounts = {
            a.account: a.share for a in self.scenario.accounts
        }  # org/a, org/b: one level below one root
        whole = sum(accounts.values())
        parts = {path: Fraction(share, whole) for path, share in accounts.items()}
        found: dict[str, list[int]] = {path: [] for path in parts}
        for capacity in self._hourly(self.healthy()):
            exact = {path: part * capacity for path, part in parts.items()}
            floors = {path: int(amount) for path, amount in exact.items()}
            odd = capacity - sum(floors.values())
            for path in sorted(parts, key=lambda p: (floors[p] - exact[p], p))[:odd]:
                floors[path] += 1
            for path in parts:
                found[path].append(floors[path])
        return found

    def owed(self, account: str, *, placeable: bool) -> list[tuple[int, int, int]]:
        """E, D, L by hour."""
        installed = sum(h.gpus_milli for h in self.scenario.hosts)
        entitled = self.entitled()[account]
        asked, given = self._zeros(), self._zeros()
        for wait in self.waits:
            job = self.jobs[wait["job"]]
            if job.account == account and job.minimum_runtime_s > 0 and job.gpus_milli <= installed:
                if placeable and job.gpus_milli * job.minimum_runtime_s > sum(entitled):
                    continue
                asked[wait["from"] : wait["to"]] += job.gpus_milli
        for run in self.runs:
            job = self.jobs[run["job"]]
            if job.account == account and run["class"] == "allocated":
                if placeable and job.gpus_milli * job.minimum_runtime_s > sum(entitled):
                    continue
                given[run["from"] : run["to"]] += sum(run["placement"].values())
        return list(zip(entitled, self._hourly(asked + given), self._hourly(given), strict=True))

    def waited(self, group: str, *, again: bool) -> tuple[Counter[int], Counter[int], int]:
        """Waits that go on in the window by their length, over or not, and how many began before it."""
        ended, unended, before = Counter[int](), Counter[int](), 0
        for wait in self.waits:
            if wait["again"] == again and wait["to"] >= self.skip and self._group(wait["job"]) == group:
                (ended if wait["end"] is Started else unended)[wait["to"] - wait["from"]] += 1
                before += wait["from"] < self.skip
        return ended, unended, before

    def _group(self, name: str) -> str:
        job = self.jobs[name]
        if job.kind in {"debug", "interactive"}:
            return job.kind
        return "medium" if job.gpus_milli <= 8000 else "large"

    def _seconds(self, from_s: int, to_s: int) -> int:
        seconds = self._zeros()
        seconds[from_s:to_s] = 1
        return int(seconds[self.skip :].sum())

    def used(self, account: str) -> dict[str, int]:
        sums = Counter[str]()
        for run in self.runs:
            if self.jobs[run["job"]].account != account:
                continue
            milli = sum(run["placement"].values())
            sums[run["class"]] += milli * self._seconds(run["from"], run["to"])
            if run["left"] is not None and run["to"] >= self.skip:
                left = run["left"]
                sums["loading"] += milli * self._seconds(
                    run["from"], min(run["from"] + left.loading_s, run["to"])
                )
                sums["idle"] += milli * self._seconds(max(run["to"] - left.idle_s, run["from"]), run["to"])
                sums["lost"] += milli * left.lost_s
                sums["preemptions"] += left.why == "preempted"
        return sums

    def gang(self) -> tuple[list[int], list[int]]:
        """Largest startable gang by hour: its sum over the seconds, and its least."""
        rooms = np.array(
            [
                np.where(self.condition[h.host] == 0, h.gpus_milli - self.held[h.host], 0)
                for h in self.scenario.hosts
            ]
        )
        size = self.scenario.hosts[0].gpus_milli
        largest = (rooms == size).sum(axis=0) * size + np.where(rooms < size, rooms, 0).max(axis=0)
        hours = largest[self.skip :].reshape(-1, HOUR_S)
        return [int(n) for n in hours.sum(axis=1)], [int(n) for n in hours.min(axis=1)]

    def drains(self) -> tuple[int, int, Counter[int], Counter[int]]:
        begun = asked = 0
        ended, unended = Counter[int](), Counter[int]()
        for spec in self.scenario.hosts:
            changes = [f for f in self.facts if isinstance(f, HostChanged) and f.host == spec.host]
            for number, change in enumerate(changes):
                if change.condition != "draining" or self._at(change) < self.skip:
                    continue
                begun += 1
                later = changes[number + 1 : number + 2]
                end = self._at(later[0]) if later else self.length
                place, stop = (
                    self.facts.index(change),
                    self.facts.index(later[0]) if later else len(self.facts),
                )
                asked += any(isinstance(f, UserAsked) and f.host == spec.host for f in self.facts[place:stop])
                empty = np.flatnonzero(self.held[spec.host][self._at(change) : end] == 0)
                repaired = bool(later) and later[0].condition == "down" and later[0].planned
                if empty.size:
                    ended[int(empty[0])] += 1
                else:
                    (ended if repaired else unended)[end - self._at(change)] += 1
        return begun, asked, ended, unended
