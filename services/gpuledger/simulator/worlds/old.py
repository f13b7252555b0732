"""The old world: priorities that cost nothing, runs that nobody may move, hosts that wait for a word with a user.

- **Priorities** are free: low, medium or high (0, 1, 2), as users state them and as they learn to (``habits``). The
  queue is served by priority, then by arrival, and whoever fits starts.
- **Runs that stay.** Users who want it have runs that nobody may take, up to the limit of their team; what is beyond
  it may be taken. A job of a higher priority takes GPUs of runs of a lower one that may be taken: the lowest first,
  the latest start first, nobody without whom it fits as well. What it takes is kept for it until it starts.
- **Large gangs.** Once somebody has waited for long, hosts that become wholly free are kept for the first of those who
  did, and one host that is emptied by not filling it.
- **Repairs.** Runs that may be taken leave a host that is to be repaired. The users of the others have to be asked, and
  their runs go when they answer.

Sessions that nobody closes keep their GPUs in any world: the engine sees to that.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from gpuledger.kernel.accounts import parent
from gpuledger.policy.placement import Placement
from gpuledger.simulator.chance import happens, length_s, stream
from gpuledger.simulator.facts import (
    Cancelled,
    Departure,
    Fact,
    HostChanged,
    HostCondition,
    Left,
    Started,
    Submitted,
)
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.floor import Floor, Shape
from gpuledger.simulator.worlds.habits import HIGH, LOW, Habits
from gpuledger.simulator.worlds.keeping import Keeping, claim
from gpuledger.simulator.worlds.lines import Line
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start, class_of
from gpuledger.simulator.worlds.releases import longest_s
from gpuledger.simulator.worlds.settings import settings_of

NAME = "old"
SETTINGS = {"long_wait_s": 1_800, "stay_permille": 700, "hold_after_s": 30 * 3_600, "answer_s": 4 * 3_600}
"""What a scenario may set under ``worlds: old:``, and what it is otherwise.

- ``long_wait_s``: who waits for so long asks for a higher priority from then on.
- ``stay_permille``: of so many of a thousand jobs the users want that nobody takes their GPUs.
- ``hold_after_s``: who has waited for so long has hosts kept.
- ``answer_s``: how long a user who is asked takes to answer, in the mean.
"""


class _Candidate(NamedTuple):
    """Somebody who waits, in the order in which they are served."""

    rank: int
    place: int
    job: str
    shape: Shape


class _Holding(NamedTuple):
    """What a run is to this world."""

    job: Job
    priority: int
    stays: bool
    placement: Placement


class Old:
    """The world.

    Args:
        scenario: What is simulated; its accounts have the limits of the teams.
        seed: What the wishes and the answers of users are drawn from.

    Raises:
        Refused: When a setting is not known.
    """

    name = NAME

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._settings = settings_of(scenario, NAME, SETTINGS)
        self._seed = seed
        self._limits = {
            spec.account: spec.team_limit_milli
            for spec in scenario.accounts
            if spec.team_limit_milli is not None
        }
        self._staying: Counter[str] = Counter()  # milli-GPU by account with a limit
        self._floor = Floor(scenario.hosts)
        self._keeping = Keeping(self._floor)
        self._held_for: str | None = None
        self._habits = Habits(self._settings["long_wait_s"])
        self._lines: dict[tuple[int, Shape], Line] = {}
        self._where: dict[str, _Candidate] = {}
        self._places = 0
        self._holdings: dict[str, _Holding] = {}
        self._movable: dict[int, dict[str, Placement]] = {priority: {} for priority in range(LOW, HIGH + 1)}
        self._leaving: dict[str, None] = {}  # told to leave
        self._taken: dict[str, None] = {}  # of those, who has to for somebody of a higher priority
        self._arrived: list[str] = []
        self._raised: list[tuple[Job, int]] = []
        self._draining: list[str] = []
        self._answers: list[tuple[int, str, int, str]] = []  # when, whose run, for which host
        self._look_at_all = False
        self._cluster = Cluster(cluster=scenario.cluster, at_s=scenario.start_s)
        self._begin(self._cluster)

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        self._floor.told(fact)
        match fact:
            case Submitted():
                self._arrived.append(fact.job.job)
            case Started():  # from now on, and not while it is being ordered, it may be told to leave
                holding = self._holdings[fact.job]
                if not holding.stays:
                    self._movable[holding.priority][fact.job] = holding.placement
            case Cancelled():
                self._look_at_all |= fact.job in self._keeping.kept
                self._leave_line(fact.job)
            case Left():
                self._look_at_all = True
                self._gave_back(fact)
            case HostChanged():
                self._look_at_all = True
                self._changed(fact)
            case _:
                pass

    def decide(self, cluster: Cluster) -> Orders:
        """Serve by priority and arrival, send away who is in the way, and see to hosts that are to be repaired."""
        self._begin(cluster)
        self._keeping.match(self._floor.look(cluster))
        self._raised += self._habits.look(cluster.at_s)
        candidates = [*self._rank_anew(), *self._join()]
        self._empty_hosts()
        if self._look_at_all:
            self._look_at_all = False
            self._serve()
        else:
            for candidate in sorted(candidates):
                self._serve_one(candidate)
        return Orders(starts=self._starts, leave=self._leave, asks=self._asks, wake_s=self._wake_s())

    def _wake_s(self) -> int | None:
        if self._asks_again:
            self._look_at_all = True
            return self._cluster.at_s + 1
        return self._answers[0][0] if self._answers else None

    def _begin(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._starts: list[Start] = []
        self._leave: list[str] = []
        self._asks: list[tuple[str, str]] = []
        self._lowest_start = HIGH  # of the runs that are being started and may be taken
        self._asks_again = False

    # The queue.

    def _join(self) -> Iterator[_Candidate]:
        for name in self._arrived:
            waiting = self._cluster.waiting.get(name)
            if waiting is not None:
                yield self._line_up(waiting.job, self._habits.waits(waiting.job, self._cluster.at_s))
        self._arrived.clear()

    def _rank_anew(self) -> Iterator[_Candidate]:
        """Put whose user asks for more now to the end of the line of that."""
        for job, priority in self._raised:
            old = self._where.pop(job.job, None)
            if old is not None:  # else it has left since
                self._lines[-old.rank, old.shape].leave(old.place)
                yield self._line_up(job, priority)
        self._raised.clear()

    def _line_up(self, job: Job, priority: int) -> _Candidate:
        self._places += 1
        shape = (job.gpus_milli, job.gpu_model)
        self._lines.setdefault((priority, shape), Line()).join(self._places, job.job, 0)
        self._where[job.job] = candidate = _Candidate(-priority, self._places, job.job, shape)
        return candidate

    def _leave_line(self, job: str) -> None:
        candidate = self._where.pop(job, None)
        if candidate is not None:  # else it came and went in one instant
            self._lines[-candidate.rank, candidate.shape].leave(candidate.place)
            self._habits.rests(job)
            self._release(job)

    def _release(self, job: str) -> None:
        self._keeping.release(job)
        if self._held_for == job:
            self._held_for = None

    def _serve(self) -> None:
        """Look at everybody who waits, the next of each line at a time."""
        if self._held_for is not None:
            self._release(self._held_for)
        for name, placement in list(self._keeping.kept.items()):
            if self._keeping.is_ready(name):
                self._start(self._where[name], placement)
        waiting = [
            _Candidate(-priority, *first, shape)
            for (priority, shape), line in self._lines.items()
            if (first := line.first())
        ]
        heapify(waiting)
        while waiting:
            candidate = waiting[0]
            line = self._lines[-candidate.rank, candidate.shape]
            following = line.first(candidate.place + 1)
            if self._serve_one(candidate) and following:
                heapreplace(waiting, _Candidate(candidate.rank, *following, candidate.shape))
            else:
                heappop(waiting)

    def _serve_one(self, candidate: _Candidate) -> bool:
        """Start somebody, or see to it that they can; False when they have to wait as they are."""
        if candidate.job in self._keeping.kept:
            return True
        placement = self._keeping.room.fit(*candidate.shape)
        if placement is not None:
            self._start(candidate, placement)
            return True
        if self._send_away(candidate):
            return True
        self._hold(candidate)
        return False

    def _start(self, candidate: _Candidate, placement: Placement) -> None:
        job, priority = self._cluster.waiting[candidate.job].job, -candidate.rank
        self._leave_line(job.job)
        self._floor.take(job.job, placement)
        self._keeping.match(placement)
        stays = self._may_stay(job)
        self._holdings[job.job] = _Holding(job, priority, stays, placement)
        if stays:
            self._staying.update(dict.fromkeys(self._limited(job.account), job.gpus_milli))
        else:
            self._lowest_start = min(self._lowest_start, priority)
        self._starts.append(
            Start(
                job=job.job,
                placement=placement,
                klass=class_of(job),
                protected_s=longest_s(job) if stays else 0,
                priority=priority,
            )
        )

    # Who stays, and who has to leave.

    def _limited(self, account: str) -> list[str]:
        """Return the account and those above it that have a limit."""
        above: str | None = account
        found = []
        while above is not None:
            if above in self._limits:
                found.append(above)
            above = parent(above)
        return found

    def _may_stay(self, job: Job) -> bool:
        if not happens(f"{self._seed}/old/stays/{job.job}", self._settings["stay_permille"]):
            return False
        return all(
            self._staying[account] + job.gpus_milli <= self._limits[account]
            for account in self._limited(job.account)
        )

    def _send_away(self, candidate: _Candidate) -> bool:
        """Tell runs of lower priorities to leave if somebody has room then, and keep it for them."""
        runs = [
            run
            for priority in range(LOW, -candidate.rank)
            for run in reversed(self._movable[priority].items())
        ]
        found = claim(self._keeping, *candidate.shape, runs) if runs else None
        if found is None:
            # Who starts in this very instant can be told to leave a second later.
            self._asks_again |= self._lowest_start < -candidate.rank
            return False
        for name in found.victims:
            self._order_to_leave(name)
            self._taken[name] = None
        self._keeping.keep(candidate.job, found.placement)
        return True

    def _order_to_leave(self, job: str) -> None:
        holding = self._holdings[job]
        self._leave.append(job)
        self._movable[holding.priority].pop(job, None)
        if job not in self._leaving:
            self._leaving[job] = None
            self._keeping.leaving.update(holding.placement)

    def _hold(self, candidate: _Candidate) -> None:
        """Keep what helps somebody who has waited for long, if nobody before them has."""
        waited_s = self._cluster.at_s - self._cluster.waiting[candidate.job].since_s
        if self._held_for is not None or waited_s < self._settings["hold_after_s"]:
            return
        gpus_milli, gpu_model = candidate.shape
        for (model, size_milli), hosts in self._floor.kinds.items():
            if gpu_model in (None, model) and gpus_milli <= size_milli * len(hosts):
                free = self._keeping.free
                emptiest = sorted(hosts, key=lambda host: (-free[host], host))
                wanted = emptiest[: -(-gpus_milli // size_milli)]
                whole = sum(free[host] == size_milli for host in wanted)
                self._held_for = candidate.job
                self._keeping.keep(
                    candidate.job, {host: free[host] for host in wanted[: whole + 1] if free[host] > 0}
                )
                return

    def _gave_back(self, fact: Left) -> None:
        holding = self._holdings.pop(fact.job)
        self._movable[holding.priority].pop(fact.job, None)
        if fact.job in self._leaving:
            del self._leaving[fact.job]
            self._keeping.leaving.subtract(holding.placement)
        if holding.stays:
            self._staying.subtract(dict.fromkeys(self._limited(holding.job.account), holding.job.gpus_milli))
        if fact.job in self._taken:
            del self._taken[fact.job]
            if fact.why is Departure.PREEMPTED:
                self._raised += self._habits.learns(holding.job.user, holding.priority, fact.at_s)
        if fact.requeued:
            self._arrived.append(fact.job)

    # Hosts that are to be repaired.

    def _changed(self, fact: HostChanged) -> None:
        if fact.condition is HostCondition.DRAINING:
            self._draining.append(fact.host)
        if fact.condition is not HostCondition.HEALTHY:
            for name in [name for name, kept in self._keeping.kept.items() if fact.host in kept]:
                self._release(name)

    def _empty_hosts(self) -> None:
        for host in self._draining:
            if self._cluster.hosts[host].condition is HostCondition.DRAINING:
                for name in [name for name, there in self._floor.placements.items() if host in there]:
                    self._ask_to_leave(name, host)
        self._draining.clear()
        while self._answers and self._answers[0][0] <= self._cluster.at_s:
            _, name, number, host = heappop(self._answers)
            run, condition = self._cluster.running.get(name), self._cluster.hosts[host].condition
            if run is not None and run.run == number and condition is HostCondition.DRAINING:
                self._order_to_leave(name)

    def _ask_to_leave(self, name: str, host: str) -> None:
        run = self._cluster.running[name]
        if run.leaves_s is not None:
            return
        if not self._holdings[name].stays:
            self._order_to_leave(name)
            return
        self._asks.append((host, name))
        answer_s = length_s(
            stream(f"{self._seed}/old/answers/{name}/{run.run}/{host}"), self._settings["answer_s"]
        )
        heappush(self._answers, (self._cluster.at_s + answer_s, name, run.run, host))
