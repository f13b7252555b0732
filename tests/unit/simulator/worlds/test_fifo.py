"""First come, first served, with EASY backfill: cases by hand, and a queue that is looked through from its front."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulating import T0, job, outages, scenario

from gpuledger.policy.placement import HostState, Room
from gpuledger.simulator import engine
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Cancelled, Fact, HostChanged, Left, Started
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import FaultModel, Scenario
from gpuledger.simulator.worlds.fifo import Fifo
from gpuledger.simulator.worlds.protocol import Cluster, Orders, Start, class_of
from gpuledger.simulator.worlds.releases import longest_s


def starts(played: Scenario) -> dict[str, int]:
    """When each job started first."""
    found: dict[str, int] = {}
    for fact in simulate(played, Fifo(played, 1)):
        if isinstance(fact, Started):
            found.setdefault(fact.job, fact.at_s - T0)
    return found


def limited(name: str, gpus: float, work_s: int, *, at_s: int = 0, limit_s: int | None = None) -> Job:
    return job(name, gpus, work_s, at_s=at_s, time_limit_s=limit_s or work_s)


def test_a_short_one_overtakes_and_a_long_one_does_not() -> None:
    """``first`` needs the host at 100. ``short`` is back by then, ``long`` is not."""
    jobs = [
        limited("runs", 6, 100),
        limited("first", 8, 50, at_s=1),
        limited("long", 2, 99, at_s=2),
        limited("short", 2, 97, at_s=3),
    ]
    assert starts(scenario(jobs)) == {"runs": 0, "first": 100, "short": 3, "long": 150}


def test_a_long_one_overtakes_where_it_is_not_in_the_way() -> None:
    """``first`` needs 4 of the 8 GPUs that come back at 100 on h0; 2 of h1 are free."""
    jobs = [
        limited("h0", 8, 100),
        limited("h1", 6, 900),
        limited("first", 4, 50, at_s=1),
        limited("long", 2, 500, at_s=2),
    ]
    assert starts(scenario(jobs, hosts=(8, 8)))["long"] == 2


def test_who_declares_too_much_is_first_earlier() -> None:
    """The run ends at 60 though it declared 100: what was reserved is looked at again."""
    jobs = [limited("runs", 8, 60, limit_s=100), limited("first", 8, 50, at_s=1)]
    assert starts(scenario(jobs))["first"] == 60


def test_nobody_waits_for_a_gang_that_can_have_no_room() -> None:
    jobs = [limited("giant", 64, 50), limited("next", 8, 50, at_s=1)]
    assert starts(scenario(jobs)) == {"next": 1}


def test_a_gang_that_has_room_once_a_host_is_back_has_kept_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    down = {"h1": outages((10, 100))}
    monkeypatch.setattr(engine, "faults", lambda _, host, **__: iter(down.get(host, ())))
    jobs = [
        limited("gang", 16, 50, at_s=20),
        limited("next", 8, 200, at_s=21),
        limited("later", 8, 50, at_s=22),
    ]
    assert starts(scenario(jobs, hosts=(8, 8))) == {"next": 21, "gang": 221, "later": 110}


def test_the_reservation_goes_with_who_cancels() -> None:
    jobs = [
        limited("runs", 6, 100),
        replace(limited("first", 8, 50, at_s=1), patience_s=20),
        limited("long", 2, 500, at_s=2),
    ]
    assert starts(scenario(jobs)) == {"runs": 0, "long": 21}


def test_nothing_is_promised_and_the_class_is_what_was_wished_for() -> None:
    jobs = [job("paid", minimum_runtime_s=60), job("free", minimum_runtime_s=0)]
    played = scenario(jobs)
    found = [fact for fact in simulate(played, Fifo(played, 1)) if isinstance(fact, Started)]
    assert [(fact.job, fact.klass, fact.protected_s) for fact in found] == [
        ("paid", "allocated", 0),
        ("free", "unallocated", 0),
    ]


class Patient:
    """The same rules, by looking through everything again each time."""

    name = "patient"

    def __init__(self, played: Scenario) -> None:
        self.hosts = played.hosts
        self.head: str | None = None
        self.at_s = 0
        self.spare: dict[str, int] = {}
        self.again = True
        self.promised: dict[str, int] = {}
        self.hosts_changed = False

    def told(self, fact: Fact) -> None:
        if isinstance(fact, Left | HostChanged) or (isinstance(fact, Cancelled) and fact.job == self.head):
            self.again = True
        self.hosts_changed |= isinstance(fact, HostChanged)

    def room(self, cluster: Cluster, free: Mapping[str, int]) -> Room:
        hosts = [HostState(host=h.host, gpus_milli=h.gpus_milli, gpu_model=h.gpu_model) for h in self.hosts]
        room = Room(hosts)
        room.set_all({name: free.get(name, 0) for name in cluster.hosts})
        return room

    def decide(self, cluster: Cluster) -> Orders:
        free = {name: h.free_milli for name, h in cluster.hosts.items() if h.condition == "healthy"}
        ends = [
            (run.started_s + longest_s(run.job), run.placement, name) for name, run in cluster.running.items()
        ]
        orders: list[Start] = []
        overtaking = self.head is not None and not self.again
        for name, waiting in cluster.waiting.items():
            asked = waiting.job
            lasts = False
            if not overtaking:
                placement = self.room(cluster, free).fit(asked.gpus_milli, asked.gpu_model)
                if placement is None:
                    overtaking = self.reserve(cluster, asked, free, ends)
                    continue
            elif name == self.head:
                continue
            else:
                lasts = cluster.at_s + longest_s(asked) > self.at_s
                beside = {host: min(milli, self.spare.get(host, milli)) for host, milli in free.items()}
                placement = self.room(cluster, beside if lasts else free).fit(
                    asked.gpus_milli, asked.gpu_model
                )
            if placement is not None:
                orders.append(Start(job=name, placement=placement, klass=class_of(asked)))
                ends.append((cluster.at_s + longest_s(asked), placement, name))
                for host, milli in placement.items():
                    free[host] -= milli
                    if lasts and host in self.spare:
                        self.spare[host] -= milli
        if not overtaking:
            self.head, self.spare = None, {}
        self.again = False
        return Orders(starts=orders)

    def reserve(
        self,
        cluster: Cluster,
        asked: Job,
        free: Mapping[str, int],
        ends: list[tuple[int, Mapping[str, int], str]],
    ) -> bool:
        later = dict(free)
        for end_s, placement, _ in sorted(ends, key=lambda end: (end[0], end[2])):
            for host, milli in placement.items():
                if host in later:
                    later[host] += milli
            if found := self.room(cluster, later).fit(asked.gpus_milli, asked.gpu_model):
                self.head, self.at_s = asked.job, max(end_s, cluster.at_s)
                self.spare = {host: later[host] - milli for host, milli in found.items()}
                self.promised.setdefault(asked.job, self.at_s)
                return True
        return False


JOBS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1, 2, 3, 4, 6, 8, 12, 16]),
        st.integers(1, 60),
        st.integers(0, 3),
        st.integers(0, 25),
        st.sampled_from([None, 15, 40]),
        st.booleans(),
    ),
    max_size=25,
)
BREAKING = FaultModel(mtbf_s=200, repair_s=40, drain_mtbf_s=200, drain_repair_s=30)


def drawn(rows: list[tuple[float, int, int, int, int | None, bool]]) -> list[Job]:
    at_s, jobs = 0, []
    for number, (gpus, work_s, over, gap_s, patience_s, checks) in enumerate(rows):
        at_s += gap_s
        limit_s = work_s * over if over else None
        jobs.append(
            job(
                f"j{number:02}",
                gpus,
                work_s,
                at_s=at_s,
                time_limit_s=limit_s,
                patience_s=patience_s,
                checkpoint_s=7 if checks else None,
            )
        )
    return jobs


@given(JOBS, st.booleans())
def test_it_orders_what_a_look_through_everything_orders(
    rows: list[tuple[float, int, int, int, int | None, bool]],
    breaks: bool,  # noqa: FBT001 - drawn
) -> None:
    faults = BREAKING if breaks else None
    played = scenario(drawn(rows), hosts=(4, 4, 4, 4), faults=faults)
    played = replace(played, days=0, warm_up_days=0) if not rows else played
    quick = simulate(played, Fifo(played, 3), seed=3)
    patient = simulate(played, Patient(played), seed=3)
    for number, (found, expected) in enumerate(zip(quick, patient, strict=True)):
        assert found == expected
        if number > 500:  # hosts break for ever
            break


@given(JOBS)
def test_whoever_is_first_starts_by_what_it_was_promised(
    rows: list[tuple[float, int, int, int, int | None, bool]],
) -> None:
    """While no host breaks."""
    played = scenario(drawn(rows), hosts=(4, 4, 4, 4))
    world = Patient(played)
    first = {}
    for fact in simulate(played, world):
        if isinstance(fact, Started):
            first.setdefault(fact.job, fact.at_s)
    assert all(first.get(name, 0) <= at_s for name, at_s in world.promised.items())
