"""A world like Slurm's: a priority of age, size and fair tree, backfill beside some reservations, nobody is taken.

- **Priority** = weights x (age, size, fair tree), as ``priority/multifactor`` has it: the age of a wait up to a
  longest, GPUs by those of the cluster, and the rank of the user in the fair tree of use with a half-life. It is
  computed anew every few minutes; between that the order stands, and who comes is put into it.
- **Who is first** starts as soon as it fits. When it does not, a pass of backfill comes, at most so often: in order of
  priority, whoever fits and is in the way of no reservation starts, and the first few who do not fit get a reservation.
  A pass looks at so many jobs and no more. Who comes after a pass is looked at at once.
- Time limits decide what is in the way; a job without one is taken to run for a year.
"""

from bisect import bisect_left, insort
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from gpuledger.policy.placement import Placement
from gpuledger.simulator.facts import Cancelled, Fact, HostChanged, Left, Started, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.floor import Floor, Shape
from gpuledger.simulator.worlds.plan import Plan
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start, class_of
from gpuledger.simulator.worlds.releases import Releases, longest_s
from gpuledger.simulator.worlds.settings import settings_of
from gpuledger.simulator.worlds.usage import Usage

NAME = "multifactor"
SETTINGS = {
    "age_weight": 1_000,
    "size_weight": 1_000,
    "fair_weight": 10_000,
    "age_max_s": 7 * 86_400,
    "half_life_s": 7 * 86_400,
    "compute_s": 300,
    "backfill_s": 30,
    "reservations": 4,
    "tested": 500,
}
"""What a scenario may set under ``worlds: multifactor:``, and what it is otherwise.

- ``age_weight``, ``size_weight``, ``fair_weight``: what each factor, from 0 to 1, is multiplied by.
- ``age_max_s``: after so long a wait grows no older.
- ``half_life_s``: after so long a use weighs half; 0 forgets nothing.
- ``compute_s``: how often priorities are computed.
- ``backfill_s``: how often there is a pass of backfill at most.
- ``reservations``: how many who do not fit get one.
- ``tested``: how many jobs a pass looks at.
"""
_WHOLE = 1_000_000
"""A factor of 1."""


class _Place(NamedTuple):
    """A place in the order: the higher priority first, then who came first."""

    rank: int
    number: int
    job: str


class Multifactor:
    """The world.

    Args:
        scenario: What is simulated.
        seed: Nothing is drawn.

    Raises:
        Refused: When a setting is not known.
    """

    name = NAME

    def __init__(self, scenario: Scenario, seed: int) -> None:
        del seed
        self._settings = settings_of(scenario, NAME, SETTINGS)
        self._age_weight, self._size_weight, self._fair_weight = (
            self._settings[f"{term}_weight"] for term in ("age", "size", "fair")
        )
        self._age_max_s = max(self._settings["age_max_s"], 1)
        self._installed_milli = sum(host.gpus_milli for host in scenario.hosts)
        self._floor = Floor(scenario.hosts)
        self._releases = Releases()
        self._usage = Usage(scenario.accounts, self._settings["half_life_s"], scenario.start_s)
        self._factors: dict[str, int] = {}
        self._lines: dict[Shape, list[_Place]] = {}
        self._place_of: dict[str, tuple[Shape, _Place]] = {}
        self._terms: dict[str, tuple[str, int]] = {}  # who asks, and since when, of those who wait
        self._numbers = 0
        self._arrived: list[str] = []
        self._running: dict[str, Job] = {}
        self._computed_s = self._passed_s = scenario.start_s - 366 * 86_400
        self._plan: Plan | None = None  # of the last pass, while nothing has become free since
        self._cluster = Cluster(cluster=scenario.cluster, at_s=scenario.start_s)
        self._starts: list[Start] = []

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        self._floor.told(fact)
        match fact:
            case Submitted():
                self._arrived.append(fact.job.job)
                self._usage.leaf(fact.job)
            case Started():
                self._usage.holds(self._running[fact.job], fact.at_s)
            case Left():
                self._usage.gives_back(self._running.pop(fact.job), fact.at_s)
                self._releases.drop(fact.job)
                if fact.requeued:
                    self._arrived.append(fact.job)
            case Cancelled():
                self._leave_line(fact.job)
            case _:
                pass
        if isinstance(fact, Left | Cancelled | HostChanged):
            self._plan = None

    def decide(self, cluster: Cluster) -> Orders:
        """Start who is first while it fits, and have a pass of backfill when one is due."""
        self._cluster, self._starts = cluster, []
        self._floor.look(cluster)
        self._compute()  # though nobody waits: what was used fades all the same
        arrived = self._join()
        if self._plan is not None:
            for place in arrived:
                if not self._overtakes(self._plan, place):
                    self._reserve(self._plan, place)
            return Orders(starts=self._starts)
        self._start_the_first()
        if not self._place_of:
            return Orders(starts=self._starts)
        due_s = self._passed_s + self._settings["backfill_s"]
        if cluster.at_s < due_s:
            return Orders(starts=self._starts, wake_s=due_s)
        self._passed_s = cluster.at_s
        self._plan = self._backfill()
        return Orders(starts=self._starts)

    # The order.

    def _compute(self) -> None:
        """Compute all priorities when it is time to."""
        at_s = self._cluster.at_s
        if at_s - self._computed_s < self._settings["compute_s"]:
            return
        self._computed_s = at_s
        self._factors = self._usage.factors(at_s, _WHOLE)
        self._plan = None
        for (gpus_milli, gpu_model), line in self._lines.items():
            line[:] = sorted(
                _Place(-self._priority(gpus_milli, *self._terms[name]), number, name)
                for _, number, name in line
            )
            for place in line:
                self._place_of[place.job] = (gpus_milli, gpu_model), place

    def _priority(self, gpus_milli: int, leaf: str, since_s: int) -> int:
        """Return the priority of a job, as of the last time that factors were computed."""
        age_s = min(max(self._computed_s - since_s, 0), self._age_max_s)
        return (
            self._fair_weight * self._factors.get(leaf, _WHOLE)
            + self._age_weight * age_s * _WHOLE // self._age_max_s
            + self._size_weight * gpus_milli * _WHOLE // self._installed_milli
        )

    def _join(self) -> list[_Place]:
        """Put who arrived into the order, and return them in it."""
        joined = []
        for name in self._arrived:
            waiting = self._cluster.waiting.get(name)
            if waiting is not None:
                self._numbers += 1
                shape = (waiting.job.gpus_milli, waiting.job.gpu_model)
                self._terms[name] = terms = (self._usage.leaf(waiting.job), waiting.since_s)
                place = _Place(-self._priority(shape[0], *terms), self._numbers, name)
                insort(self._lines.setdefault(shape, []), place)
                self._place_of[name] = shape, place
                joined.append(place)
        self._arrived.clear()
        return sorted(joined)

    def _leave_line(self, job: str) -> None:
        if job in self._place_of:  # else it came and went in one instant
            shape, place = self._place_of.pop(job)
            line = self._lines[shape]
            del self._terms[job]
            del line[bisect_left(line, place)]

    # Who starts.

    def _start_the_first(self) -> None:
        while self._place_of:
            line = min((line for line in self._lines.values() if line), key=lambda line: line[0])
            job = self._job(line[0])
            placement = self._floor.room.fit(job.gpus_milli, job.gpu_model)
            if placement is None:
                return
            self._start(job, placement)

    def _backfill(self) -> Plan:
        """Look at who waits, the highest priority first."""
        plan = Plan(self._floor, self._releases)
        tested = self._settings["tested"]
        too_long: dict[Shape, int] = {}  # less and less fits in a pass, and what lasts longer fits no better
        hopeful: dict[Shape, bool] = {}  # whether it fits at all; forgotten when somebody starts
        heads = [(line[0], 0, shape) for shape, line in self._lines.items() if line]
        heapify(heads)
        while heads and tested:
            tested -= 1
            place, index, shape = heads[0]
            line, limit_s = self._lines[shape], longest_s(self._job(place))
            if limit_s < too_long.get(shape, limit_s + 1):
                if self._overtakes(plan, place):
                    index -= 1  # it has left its line
                    hopeful.clear()
                else:
                    too_long[shape] = limit_s
            if place.job in self._place_of:
                self._reserve(plan, place)
            if shape not in hopeful:
                hopeful[shape] = self._floor.room.fit(*shape) is not None
            if index + 1 < len(line) and (hopeful[shape] or self._may_reserve(plan)):
                heapreplace(heads, (line[index + 1], index + 1, shape))
            else:
                heappop(heads)
        return plan

    def _overtakes(self, plan: Plan, place: _Place) -> bool:
        """Start somebody who fits and is in nobody's way, and say whether it is so."""
        job = self._job(place)
        end_s = self._cluster.at_s + longest_s(job)
        placement = plan.fit(job, end_s)
        if placement is not None:
            self._start(job, placement)
            plan.take(placement, end_s)
        return placement is not None

    def _may_reserve(self, plan: Plan) -> bool:
        return len(plan) < self._settings["reservations"]

    def _reserve(self, plan: Plan, place: _Place) -> None:
        if self._may_reserve(plan):
            plan.reserve(self._job(place), self._cluster.at_s)

    def _job(self, place: _Place) -> Job:
        return self._cluster.waiting[place.job].job

    def _start(self, job: Job, placement: Placement) -> None:
        self._leave_line(job.job)
        self._floor.take(job.job, placement)
        self._releases.put(job.job, self._cluster.at_s + longest_s(job))
        self._running[job.job] = job
        self._starts.append(Start(job=job.job, placement=placement, klass=class_of(job)))
