"""Whatever is booked after a cycle, a replay of the cycle reproduces it byte for byte."""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, closing, decision, host, workload
from gpuledger.events.envelope import book_of, make
from gpuledger.events.mapping import MappingRule
from gpuledger.events.registry import Fact
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.ledger import cycle_decisions, cycles, erasure, queries
from gpuledger.ledger.append import append
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.rebuild import rebuild
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.reading import read_state
from gpuledger.policy.recorded import decision_of
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.replaying import recompute, replay
from gpuledger.policy.state import PolicyConfig

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=max(settings().max_examples // 3, 30), deadline=None)
CALENDAR = Calendar()
EVE_S = 1_795_996_800
"""2026-11-30T00:00:00Z: a period ends while a history goes on."""

DAY = 86_400
ACCOUNTS = ("org/a", "org/b/c", "org/b/d", "late/e")
USERS = ("ada", "grace")
WORKLOADS = tuple(f"w{n}" for n in range(7))


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "replayed_ledgers")


class History:
    """A book that lives: what happens is drawn, and cycles lie in between."""

    def __init__(self, connection: sa.Connection, randomness: random.Random) -> None:
        self.reader, self.writer = Reader(connection), Writer(connection)
        self.draw = randomness
        self.now_s = EVE_S
        self.issued: list[tuple[str, dict[str, object]]] = []
        self.accounts = {"org/a"}
        self.told = 0

    def tell(self, fact: Fact, at_s: int) -> None:
        """Book a fact, at the clock's time."""
        self.told += 1
        event, _ = make(id=str(self.told), source=self.draw.choice("pq"), at_s=at_s, data=fact)
        append(self.writer, book_of(fact), [event], clock=self.clock, calendar=CALENDAR)

    @property
    def clock(self) -> FixedClock:
        return FixedClock(instant(self.now_s))

    def past_s(self) -> int:
        """Some instant up to now, often long ago: facts come late."""
        return self.now_s - self.draw.choice((0, 0, 60, 600, 3600, 7200, DAY))

    def begin(self) -> None:
        """Hosts and one account."""
        for account in ("org", "org/a"):
            self.tell(budget.AccountCreated(account=account), 0)
        for name, gpus in (("h1", 8), ("h2", 8)):
            self.tell(
                host.Registered(cluster="alpha", host=name, gpus=gpus, gpu_model="H100"), EVE_S - 9 * DAY
            )

    def step(self) -> None:
        """Something happens."""
        self.now_s += self.draw.choice((0, 1, 59, 900, 7200))
        happens = self.draw.choices(
            (self.submit, self.start, self.stop, self.admit, self.inventory, self.organise, self.fund, self.remap,
             self.tick, self.close, self.erase, self.rebuild, self.cycle),
            weights=(8, 7, 4, 2, 2, 3, 3, 1, 1, 1, 1, 1, 7),
        )[0]  # fmt: skip
        happens()

    def submit(self) -> None:
        account = self.draw.choice(ACCOUNTS)
        for node in lineage(account):
            if node not in self.accounts:
                self.accounts.add(node)
                self.tell(budget.AccountCreated(account=node), 0)
        self.tell(
            workload.Submitted(
                cluster="alpha", workload=self.draw.choice(WORKLOADS), account=account,
                user=self.draw.choice(USERS), gpus_milli=self.draw.choice((500, 1000, 4000, 8000, 12_000)),
                minimum_runtime_s=self.draw.choice((None, 0, 900, 7200)), priority=self.draw.choice((None, 5)),
                gpu_model=self.draw.choice((None, "h100", "other")),
            ),
            self.past_s(),
        )  # fmt: skip

    def start(self) -> None:
        hosts = self.draw.choice((["h1"], ["h2"], ["h1", "h2"], []))
        self.tell(
            workload.Started(
                cluster="alpha", workload=self.draw.choice(WORKLOADS), run=self.draw.choice(("1", "2")),
                attempt=1, gpus_milli=self.draw.choice((1000, 4000, 8000)), hosts=hosts,
            ),
            self.past_s(),
        )  # fmt: skip

    def stop(self) -> None:
        run = {
            "cluster": "alpha",
            "workload": self.draw.choice(WORKLOADS),
            "run": self.draw.choice(("1", "2")),
        }
        fact: Fact = self.draw.choice(
            (
                workload.Ended(**run, reason="completed"),
                workload.Preempted(**run, reason="policy"),
                workload.Checkpointed(**run),
                workload.ClassChanged(**run, klass="unallocated", reason="policy"),
            )
        )
        self.tell(fact, self.past_s())

    def admit(self) -> None:
        self.tell(
            decision.DecisionMade(
                cluster="alpha", workload=self.draw.choice(WORKLOADS), attempt=1, klass="allocated",
                account=self.draw.choice(sorted(self.accounts)), gpus_milli=4000, hold_gpu_ms=4000 * 3600,
                reason="it fits", org_seq=1, expires_at=instant(self.now_s + 1800),
            ),
            self.now_s,
        )  # fmt: skip

    def inventory(self) -> None:
        state = self.draw.choice(("healthy", "unhealthy", "draining"))
        fact = host.StateChanged(cluster="alpha", host="h2", gpus=8, gpu_model="H100", state=state)
        self.tell(fact, self.past_s())

    def organise(self) -> None:
        account = self.draw.choice(sorted(self.accounts))
        share = budget.ShareSet(account=account, share=self.draw.randrange(4), reason="test", by="ada")
        self.tell(share, self.past_s())

    def fund(self) -> None:
        """Some accounts are hard: what their budgets pay for is asked of the books as they stood."""
        account = self.draw.choice(sorted(self.accounts))
        overdraft = self.draw.choice(("hard", "hard", "soft"))
        self.tell(
            budget.OverdraftSet(account=account, overdraft=overdraft, reason="test", by="ada"), self.past_s()
        )
        period, hours = self.draw.choice(("2026-11", "2026-12")), self.draw.choice((1, 9, 40))
        self.tell(
            budget.Granted(
                account=account, cluster="alpha", period=period, gpu_ms=hours * 3_600_000, reason="test", by="ada",
                limit=any(other.startswith(f"{account}/") for other in self.accounts),
            ),
            self.past_s(),
        )  # fmt: skip

    def remap(self) -> None:
        rule = MappingRule(account=(self.draw.choice(ACCOUNTS),), to="org/a", minimum_runtime_s=1800)
        self.accounts.add("org/a")
        changed = budget.PolicyChanged(policy="mapping", rules=[rule], by="ada", reason="test")
        self.tell(changed, self.past_s())
        self.tell(workload.Ready(cluster="alpha", workload="w0", run="1"), self.now_s)  # takes it over

    def tick(self) -> None:
        self.tell(closing.LedgerTicked(cluster="alpha"), self.now_s // 3600 * 3600)

    def close(self) -> None:
        try:
            close_period(self.writer, "alpha", "2026-11", "ada", clock=self.clock, calendar=CALENDAR)
        except Refused:
            return  # it is not over

    def erase(self) -> None:
        try:
            erasure.erase(self.writer, self.draw.choice(USERS))
        except NotFound:
            return  # nobody has named them

    def rebuild(self) -> None:
        rebuild(self.writer, CALENDAR)

    def cycle(self) -> None:
        config = PolicyConfig(
            window_s=self.draw.choice((3600, 7 * DAY)), quantum_s=self.draw.choice((60, 900))
        )
        at_s = self.now_s
        sequences = queries.sequences(self.reader)
        try:
            state = read_state(self.reader, "alpha", at_s, config)
        except Refused:
            return  # nothing is healthy
        decided = Decided.of(state, config, sequences, run_cycle(state, config))
        if record(self.writer, decided, clock=self.clock, calendar=CALENDAR) is None:
            self.issued.append((decided.issued.cycle, decided.published))


@few
@given(seed=st.integers(0, 2**32))  # drawn one by one, most draws would be the first of what there is
def test_a_replay_is_the_cycle_whatever_came_after(empty: sa.Engine, seed: int) -> None:
    randomness = random.Random(seed)
    with empty.connect() as connection, connection.begin() as transaction:
        history = History(connection, randomness)
        history.begin()
        for _ in range(randomness.randrange(8, 30)):
            history.step()
        history.cycle()
        history.tell(workload.Ready(cluster="alpha", workload="w0", run="1"), history.now_s)
        cycle_decisions.forget(history.writer, "alpha", 2 * EVE_S, 0)
        for cycle, published in history.issued:
            assert replay(history.reader, cycle).difference is None
            recorded = cycles.find(history.reader, cycle)
            assert recorded is not None
            assert recompute(history.reader, recorded).published == published
            for one in published["decisions"][:1]:
                found = decision_of(history.reader, "alpha", one["workload"], recorded.at_s)
                assert found is not None
        transaction.rollback()


def test_what_a_record_says_otherwise_is_named(empty: sa.Engine) -> None:
    with empty.connect() as connection, connection.begin() as transaction:
        history = History(connection, random.Random(7))
        history.begin()
        history.submit()
        history.now_s += 1
        config = PolicyConfig()
        state = read_state(history.reader, "alpha", history.now_s, config)
        sequences = queries.sequences(history.reader)
        decided = Decided.of(state, config, sequences, run_cycle(state, config))
        decided.issued.record["supply_gpus"] = 17
        record(history.writer, decided, clock=history.clock, calendar=CALENDAR)
        replayed = replay(history.reader, decided.issued.cycle)
        assert (replayed.ok, replayed.difference) == (
            False,
            "record.record.supply_gpus: recorded 17, replayed 16",
        )
        transaction.rollback()


def test_an_unknown_cycle_is_not_found(empty: sa.Engine) -> None:
    with empty.connect() as connection, pytest.raises(NotFound, match="alpha@x"):
        replay(Reader(connection), "alpha@x")
