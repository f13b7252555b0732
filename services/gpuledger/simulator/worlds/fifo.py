"""First come, first served, with EASY backfill: nobody is promised anything but whoever is first.

The first that does not fit gets a reservation: where and from when on it has room at the latest, by the time limits
of what runs. Others may overtake it if they fit now and either end before that, by their own time limits, or
leave it what it needs then. Nothing is ever told to leave. A gang that would have no room though everything ended
(hosts are down, or it is larger than the cluster) keeps its place and nobody waits for it.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from gpuledger.policy.placement import Placement
from gpuledger.simulator.facts import Cancelled, Fact, HostChanged, Left, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.worlds.floor import Floor, Shape
from gpuledger.simulator.worlds.lines import Line
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start, class_of
from gpuledger.simulator.worlds.releases import Opening, Releases, longest_s, opening
from gpuledger.simulator.worlds.settings import settings_of

NAME = "fifo"


class _Candidate(NamedTuple):
    """The next of a line that may start.

    Args:
        place: Its place in the queue; no two have one.
        job: The job.
        shape: Its shape.
        longest_s: The longest that is still looked for in its line; None for any.
    """

    place: int
    job: str
    shape: Shape
    longest_s: int | None = None


class Fifo:
    """The world.

    Args:
        scenario: What is simulated.
        seed: Nothing is drawn.

    Raises:
        Refused: When a setting is given: there is none.
    """

    name = NAME

    def __init__(self, scenario: Scenario, seed: int) -> None:
        del seed
        settings_of(scenario, NAME, {})
        self._floor = Floor(scenario.hosts)
        self._beside = self._floor.room.copy()  # where what lasts beyond the reservation fits
        self._releases = Releases()
        self._lines: dict[Shape, Line] = {}
        self._place_of: dict[str, tuple[Shape, int]] = {}
        self._places = 0
        self._arrived: list[str] = []
        self._head = ""
        self._opening: Opening | None = None
        self._hopeless: set[Shape] = set()
        self._look_at_all = False
        self._cluster = Cluster(cluster=scenario.cluster, at_s=scenario.start_s)
        self._starts: list[Start] = []

    def told(self, fact: Fact) -> None:
        """Take note of what happened."""
        self._floor.told(fact)
        match fact:
            case Submitted():
                self._arrived.append(fact.job.job)
            case Left():
                self._look_at_all = True
                self._releases.drop(fact.job)
                if fact.requeued:
                    self._arrived.append(fact.job)
            case Cancelled():
                self._look_at_all |= fact.job == self._head
                self._leave_line(fact.job)
            case HostChanged():
                self._look_at_all = True
                self._hopeless.clear()
            case _:
                pass

    def decide(self, cluster: Cluster) -> Orders:
        """Start who is first while it fits, then whoever is not in its way."""
        self._cluster, self._starts = cluster, []
        self._match(self._floor.look(cluster))
        arrived = self._join()
        if self._look_at_all or self._opening is None:
            self._look_at_all = False
            self._serve()
        else:
            for candidate in arrived:
                self._overtakes(candidate)
        return Orders(starts=self._starts)

    def _join(self) -> list[_Candidate]:
        """Put who arrived at the ends of their lines."""
        joined = []
        for name in self._arrived:
            waiting = self._cluster.waiting.get(name)
            if waiting is not None:
                shape = (waiting.job.gpus_milli, waiting.job.gpu_model)
                self._places += 1
                self._lines.setdefault(shape, Line()).join(self._places, name, longest_s(waiting.job))
                self._place_of[name] = shape, self._places
                joined.append(_Candidate(self._places, name, shape))
        self._arrived.clear()
        return joined

    def _leave_line(self, job: str) -> None:
        if job in self._place_of:  # else it came and went in one instant
            shape, place = self._place_of.pop(job)
            self._lines[shape].leave(place)

    def _serve(self) -> None:
        """Start in order until one does not fit, which is reserved for; then look who may overtake it."""
        waiting = [
            _Candidate(*first, shape)
            for shape, line in self._lines.items()
            if shape not in self._hopeless and (first := line.first())
        ]
        heapify(waiting)
        self._reserve("", None)
        while waiting:
            head = waiting[0]
            placement = self._floor.room.fit(*head.shape)
            if placement is not None:
                self._start(head, placement)
                self._advance(waiting, head)
            elif found := opening(self._floor, self._releases, self._job(head), self._cluster.at_s):
                self._reserve(head.job, found)
                self._advance(waiting, head)
                self._backfill(waiting)
                return
            else:
                self._hopeless.add(head.shape)
                heappop(waiting)

    def _backfill(self, waiting: list[_Candidate]) -> None:
        """Start in order whoever may overtake."""
        while waiting:
            candidate = waiting[0]
            if self._overtakes(candidate):
                self._advance(waiting, candidate)
            elif self._is_short(candidate):  # nobody of this shape fits anywhere
                heappop(waiting)
            else:
                self._advance(waiting, candidate, self._slack_s())

    def _overtakes(self, candidate: _Candidate) -> bool:
        """Start a job if it fits and is not in the way of the reservation, and say whether it is so."""
        is_short = self._is_short(candidate)
        room = self._floor.room if is_short else self._beside
        placement = room.fit(*candidate.shape)
        if placement is None:
            return False
        if self._opening is not None and not is_short:
            for host, milli in placement.items():
                if host in self._opening.spare:
                    self._opening.spare[host] -= milli
        self._start(candidate, placement)
        return True

    def _is_short(self, candidate: _Candidate) -> bool:
        """Say whether a job ends before whoever is first has room."""
        return longest_s(self._job(candidate)) <= self._slack_s()

    def _slack_s(self) -> int:
        return self._opening.at_s - self._cluster.at_s if self._opening is not None else 0

    def _advance(self, waiting: list[_Candidate], last: _Candidate, longest_s: int | None = None) -> None:
        """Put the next of a line in the place of its last candidate."""
        longest_s = last.longest_s if longest_s is None else longest_s
        following = self._lines[last.shape].first(last.place + 1, longest_s)
        if following is None:
            heappop(waiting)
        else:
            heapreplace(waiting, _Candidate(*following, last.shape, longest_s))

    def _start(self, candidate: _Candidate, placement: Placement) -> None:
        job = self._job(candidate)
        self._leave_line(job.job)
        self._floor.take(job.job, placement)
        self._releases.put(job.job, self._cluster.at_s + longest_s(job))
        self._match(placement)
        self._starts.append(Start(job=job.job, placement=placement, klass=class_of(job)))

    def _reserve(self, head: str, found: Opening | None) -> None:
        """Keep what somebody needs; None keeps nothing."""
        before, self._head, self._opening = self._opening, head, found
        for changed in (before, found):
            if changed is not None:
                self._match(changed.spare)

    def _match(self, hosts: Iterable[str]) -> None:
        """Say anew what is free on some hosts beside the reservation."""
        spare = self._opening.spare if self._opening is not None else {}
        for host in hosts:
            free_milli = self._floor.free.get(host, 0)
            self._beside.set_free(host, min(free_milli, spare.get(host, free_milli)))

    def _job(self, candidate: _Candidate) -> Job:
        return self._cluster.waiting[candidate.job].job
