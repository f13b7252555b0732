"""A simulation is told to a ledger and read back: decided the same way it is the same simulation again."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.events import workload
from gpuledger.events.budget import ShareSet
from gpuledger.events.envelope import make
from gpuledger.ingest.importer import LedgerSink, run_import
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries
from gpuledger.simulator.backtest.reading import DAY_S, Retold, Stretch, read_in_force, read_stretch
from gpuledger.simulator.backtest.replaying import back_test
from gpuledger.simulator.comparison import with_shares
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.engine import simulate
from gpuledger.simulator.facts import Cancelled, Departure, Fact, HostChanged, Left, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.journal import Journal
from gpuledger.simulator.measures import measure
from gpuledger.simulator.scenario import AccountSpec, FaultModel, HostSpec, Scenario
from gpuledger.simulator.summary import summarise
from gpuledger.simulator.worlds.registry import make_world
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

START_S = 1_709_251_200
"""2024-03-01T00:00:00Z."""
HOUR_S = 3_600
DAYS, WARM_UP_DAYS = 2, 1


class Drawn:
    """More than fits, of two accounts: some load, some save, some give up, some cannot go on once they are taken."""

    def __init__(self, seed: int) -> None:
        draw, at_s, jobs = random.Random(seed), START_S, list[Job]()
        while at_s < START_S + (DAYS + WARM_UP_DAYS) * DAY_S:
            at_s += draw.randint(60, 2_400)
            jobs.append(
                Job(
                    job=f"j{len(jobs)}", account=draw.choice(["org/a", "org/b"]), user=draw.choice(["ada", "bob"]),
                    kind=draw.choice(["train", "train", "debug"]), gpus_milli=1000 * draw.choice([1, 2, 4, 8, 16, 16]),
                    submitted_s=at_s, work_s=draw.randint(600, 20_000), startup_s=draw.choice([0, 60]),
                    minimum_runtime_s=draw.choice([0, 900, HOUR_S]), checkpoint_s=draw.choice([None, 700, 900]),
                    patience_s=draw.choice([None, None, 2 * HOUR_S]), resumable=draw.random() < 0.7,
                    time_limit_s=draw.choice([None, 4_000]), priority=draw.choice([0, 5]),
                )
            )  # fmt: skip
        self.jobs = jobs

    def first(self) -> Iterable[Job]:
        return self.jobs

    def after(self, job: Job, at_s: int) -> Iterable[Job]:
        return ()


SCENARIO = Scenario(
    name="drawn",
    cluster="c",
    start_s=START_S,
    days=DAYS,
    warm_up_days=WARM_UP_DAYS,
    hosts=tuple(HostSpec(host=f"h{n}", gpus_milli=8_000, gpu_model="H100") for n in range(5)),
    accounts=(
        AccountSpec(account="org", share=1),
        AccountSpec(account="org/a", share=3),
        AccountSpec(account="org/b", share=1),
    ),
    demand=Drawn,
    faults=FaultModel(mtbf_s=DAY_S, repair_s=2 * HOUR_S, drain_mtbf_s=DAY_S, drain_repair_s=HOUR_S),
)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@cache
def simulated() -> tuple[list[Fact], bytes]:
    """Return what happened in the simulation, and what a ledger is told of it."""
    journal, facts = Journal(SCENARIO, world="gpuledger", seed=1), list[Fact]()
    lines = [*journal.opening()]
    for fact in simulate(SCENARIO, make_world("gpuledger", SCENARIO, 1), seed=1):
        lines += journal.lines(fact)
        facts.append(fact)
    return facts, b"".join(lines)


def told_to_a_ledger(engine: sa.Engine, path: Path) -> list[Fact]:
    """Tell a ledger of the simulation; return what happened."""
    facts, lines = simulated()
    path.write_bytes(lines)
    intake = Intake(engine, FixedClock(instant(SCENARIO.end_s)), Calendar())
    report, _ = run_import(source("events"), path, ImportOptions(), LedgerSink(intake), lambda _: None)
    assert report.dead_lettered == 0
    return facts


def retold(
    engine: sa.Engine, vector: dict[str, int] | None = None, everywhere: dict[str, int | str] | None = None
) -> Retold:
    stretch = Stretch(
        cluster="c",
        from_s=SCENARIO.measured_from_s,
        days=DAYS,
        warm_up_days=None,
        known_s=SCENARIO.end_s,
        vector=vector,
    )
    with reading(engine) as reader:
        in_force = read_in_force(reader, "c", stretch.from_s, vector)
        return read_stretch(reader, stretch, replace(in_force, everywhere=everywhere or in_force.everywhere))


def happened(facts: Iterable[Fact]) -> list[tuple[Any, ...]]:
    """Return what a scheduler and its users see of facts: not what the time of a run went into."""
    found: list[tuple[Any, ...]] = []
    for fact in facts:
        match fact:
            case Submitted(at_s=at_s, job=job):
                found.append((at_s, "submitted", job.job, job.account, job.gpus_milli))
            case Left(at_s=at_s, job=name, run=run, why=why, requeued=requeued):
                found.append((at_s, "left", name, run, why, requeued))
            case _:
                found.append((fact.at_s, fact))
    return found


def reports(found: Simulation) -> dict[str, Any]:
    """Return all that does not name the scenario, nor hang on what nobody tells: time that went into nothing."""
    document = msgspec.to_builtins(found)
    for key in ("scenario", "world", "seed", "notes", "wall_s", "loading_gpu_hours", "lost_gpu_hours"):
        del document[key]
    del document["lost_gpu_hours_by"], document["drains"]["hands"]
    for row in document["accounts"].values():
        del row["loading"], row["lost"]
    return document


def test_decided_by_what_was_in_force_everything_happens_again(engine: sa.Engine, tmp_path: Path) -> None:
    """To the second: waits, hosts, placements. Nothing is drawn anew, and the policy is the same."""
    facts = told_to_a_ledger(engine, tmp_path / "events.ndjson")
    kinds = {type(fact) for fact in facts}
    whys = {fact.why for fact in facts if isinstance(fact, Left)}
    assert kinds >= {Cancelled, HostChanged}
    assert whys == set(Departure)  # every way in which a run can be over

    told = retold(engine)
    scenario = told.scenario
    assert (scenario.start_s, scenario.warm_up_days, scenario.end_s) == (
        START_S,
        WARM_UP_DAYS,
        SCENARIO.end_s,
    )
    assert (scenario.accounts, scenario.hosts, scenario.policy) == (
        SCENARIO.accounts,
        SCENARIO.hosts,
        SCENARIO.policy,
    )
    again = list(simulate(scenario, make_world("gpuledger", scenario, 0), seed=0))
    assert happened(again) == happened(facts)

    found = summarise(measure(again, scenario), scenario, world="gpuledger", seed=0, wall_s=0.0)
    made = summarise(measure(facts, SCENARIO), SCENARIO, world="gpuledger", seed=1, wall_s=0.0)
    assert reports(found) == reports(made)


def test_the_past_is_measured_as_the_simulation_was(engine: sa.Engine, tmp_path: Path) -> None:
    """What is kept free for a waiting job no ledger is told: there it is free. Nor how long nobody used a GPU."""
    facts = told_to_a_ledger(engine, tmp_path / "events.ndjson")
    told = retold(engine)
    measured = measure(told.facts, told.scenario)
    past = reports(summarise(measured, told.scenario, world="past", seed=1, wall_s=0.0))
    made = reports(summarise(measure(facts, SCENARIO), SCENARIO, world="gpuledger", seed=1, wall_s=0.0))
    for document in (past, made):
        del document["shortfall"]
        states = document["partition_gpu_ms"]
        states["free"] += states.pop("reserved")
    assert past == made


def test_under_another_budget_whoever_has_more_of_it_gets_more(engine: sa.Engine, tmp_path: Path) -> None:
    told_to_a_ledger(engine, tmp_path / "events.ndjson")
    # So few waits follow the shares where accounts are ranked; whom the least loss spares may wait less with less.
    told = retold(engine, everywhere={"victims": "most-used"})
    other = replace(told.scenario, accounts=with_shares(told.scenario.accounts, {"org/a": 1, "org/b": 9}))
    comparison = back_test(told, other).comparison
    assert comparison is not None
    change = {row.account: row.gpu_hours.change for row in comparison.accounts}
    assert comparison.gets_less == ["org/a"]
    assert (change["org/b"] or 0) > 10
    waits = {row.account: row.wait_p50_s for row in comparison.accounts}
    a, b = waits["org/a"], waits["org/b"]
    assert a.a is not None
    assert a.b is None or a.b > a.a  # half of them are not seen to start any more
    assert b.a is None or (b.b is not None and b.b < b.a)


def test_what_was_booked_later_is_not_known(engine: sa.Engine, tmp_path: Path) -> None:
    told_to_a_ledger(engine, tmp_path / "events.ndjson")
    before = retold(engine)
    with reading(engine) as reader:
        vector = queries.sequences(reader)
    late = workload.Submitted(
        cluster="c", workload="late", account="org/b", user="ada", gpus_milli=8_000, minimum_runtime_s=900
    )
    intake = Intake(engine, FixedClock(instant(SCENARIO.end_s + 60)), Calendar())
    intake.take([make(id="late", source="test", at_s=SCENARIO.measured_from_s, data=late)[0]])
    names = [job.job for job in before.scenario.demand(0).first()]
    assert [job.job for job in retold(engine, vector).scenario.demand(0).first()] == names
    assert {job.job for job in retold(engine).scenario.demand(0).first()} == {*names, "late"}


def test_what_is_not_followed_is_said(engine: sa.Engine, tmp_path: Path) -> None:
    """A share that is set in the time, and a policy that looks at other clusters, too."""
    told_to_a_ledger(engine, tmp_path / "events.ndjson")
    assert retold(engine).scenario.notes == retold(engine, everywhere={"scope": "cluster"}).scenario.notes
    change = ShareSet(account="org/a", share=9, reason="test", by="test")
    intake = Intake(engine, FixedClock(instant(SCENARIO.end_s)), Calendar())
    intake.take([make(id="later", source="test", at_s=SCENARIO.measured_from_s + 60, data=change)[0]])
    found = retold(engine, everywhere={"scope": "clusters"})
    told = " ".join(found.scenario.notes)
    assert "shares of org/a were set in that time" in told
    assert "what accounts used of others does not count" in told
    assert found.scenario.accounts == SCENARIO.accounts  # as it was when it began


def test_a_time_without_hosts_is_refused(engine: sa.Engine) -> None:
    asked = workload.Submitted(
        cluster="c", workload="w", account="org/b", user="ada", gpus_milli=8_000, minimum_runtime_s=900
    )
    intake = Intake(engine, FixedClock(instant(SCENARIO.end_s)), Calendar())
    intake.take([make(id="w", source="test", at_s=SCENARIO.measured_from_s, data=asked)[0]])
    with pytest.raises(Refused, match="no host is known") as refused:
        retold(engine)
    assert "inventory apply" in refused.value.hint
