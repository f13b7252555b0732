"""Amendments against full cycles: whatever is submitted and carried out between two cycles, in a real book."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import budget, decision, heartbeat, host, workload
from gpuledger.events.envelope import book_of, make
from gpuledger.events.registry import Fact
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.ledger import cycles, queries
from gpuledger.ledger.append import append
from gpuledger.policy.amending import Amended, Base, amend
from gpuledger.policy.cycle import Action, Cycle, run_cycle
from gpuledger.policy.incremental import carried_out, prepare, with_submission
from gpuledger.policy.published import as_json
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided, record, record_amendment
from gpuledger.policy.replaying import replay
from gpuledger.policy.state import ClusterState, PolicyConfig

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=max(settings().max_examples // 3, 30), deadline=None)
CALENDAR = Calendar()
START_S = 1_796_083_200
"""2026-12-01T00:00:00Z."""

ACCOUNTS = ("org/a", "org/b/c", "org/b/d")
HOSTS = {"h1": 8, "h2": 8, "h3": 8, "h4": 4}


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "amended_ledgers")


@dataclass
class Book:
    """A cluster's book, and beside it what full cycles say: the oracle is told every submission by the book's state."""

    reader: Reader
    writer: Writer
    draw: random.Random
    config: PolicyConfig
    now_s: int = START_S
    told: int = 0
    submitted: int = 0
    ordered: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: dict[str, workload.Submitted] = field(default_factory=dict)

    @property
    def clock(self) -> FixedClock:
        return FixedClock(instant(self.now_s))

    def tell(self, fact: Fact, at_s: int) -> None:
        self.told += 1
        event, _ = make(id=str(self.told), source="p", at_s=at_s, data=fact)
        append(self.writer, book_of(fact), [event], clock=self.clock, calendar=CALENDAR)

    def begin(self) -> None:
        """A rate card, hosts, accounts, runs and a queue."""
        weights = {"H100": self.draw.choice((500, 1000, 2000)), "B300": 3000}
        self.tell(budget.PolicyChanged(policy="rate_card", weights=weights, by="ada", reason="test"), 0)
        for account in dict.fromkeys(node for path in ACCOUNTS for node in lineage(path)):
            self.tell(budget.AccountCreated(account=account), 0)
            share = budget.ShareSet(account=account, share=self.draw.randint(1, 4), reason="test", by="ada")
            self.tell(share, 0)
        for name, gpus in HOSTS.items():
            model = "B300" if name == "h4" else "H100"
            fact = host.Registered(cluster="alpha", host=name, gpus=gpus, gpu_model=model)
            self.tell(fact, START_S - 9 * 86_400)
        free = dict(HOSTS)
        for n in range(self.draw.randrange(6)):
            where = self.draw.choice(list(free))
            gpus = min(self.draw.choice((1, 2, 4, 8)), free[where])
            free[where] -= gpus
            since_s = START_S - self.draw.choice((300, 2000, 9000))
            if gpus:
                name = self.submit(since_s, gpus)
                self.tell(
                    workload.Started(
                        cluster="alpha", workload=name, run=f"r{n}", attempt=1, gpus_milli=gpus * 1000, hosts=[where]
                    ),
                    since_s,
                )  # fmt: skip
        for _ in range(self.draw.randrange(9)):
            self.submit(START_S - self.draw.randrange(3600))

    def submit(self, at_s: int, gpus: int | None = None) -> str:
        self.submitted += 1
        name = f"w{self.submitted}"
        later_s = self.draw.choice((None, None, None, None, 20)) if gpus is None else None
        fact = workload.Submitted(
            cluster="alpha", workload=name, account=self.draw.choice(ACCOUNTS), user="ada",
            gpus_milli=1000 * gpus if gpus else self.draw.choice((500, 1000, 2000, 4000, 8000, 16_000)),
            minimum_runtime_s=self.draw.choice((0, 600, 3600, 7200)), priority=self.draw.choice((None, 5)),
            gpu_model=self.draw.choice((None, None, "h100", "b300", "other")),
            eligible_at=None if later_s is None else instant(at_s + later_s),
        )  # fmt: skip
        self.asked[name] = fact
        self.tell(fact, at_s)
        return name

    def order(self, decisions: list[dict[str, Any]]) -> None:
        self.ordered |= {one["workload"]: one for one in decisions if one["action"] == "start"}

    def carry_out(self, name: str, classes: dict[str, str]) -> None:
        hosts, klass = self.ordered.pop(name)["hosts"], classes[name]
        if self.draw.random() < 0.5:
            self.admit(name, sum(hosts.values()), klass)
        fact = workload.Started(
            cluster="alpha", workload=name, run="r", attempt=1, gpus_milli=sum(hosts.values()), hosts=sorted(hosts),
            host_gpus_milli=hosts, klass="allocated" if classes[name] == "allocated" else "unallocated",
        )  # fmt: skip
        self.tell(fact, self.now_s)
        if self.draw.random() < 0.3:
            self.tell(workload.Ready(cluster="alpha", workload=name, run="r"), self.now_s)

    def admit(self, name: str, gpus_milli: int, klass: str) -> None:
        """Set aside what protects a start, as ``admit`` does."""
        asked = self.asked[name]
        hold_s = (asked.minimum_runtime_s or 0) if klass == "allocated" else 0
        fact = decision.DecisionMade(
            cluster="alpha", workload=name, attempt=1, klass="allocated" if klass == "allocated" else "unallocated",
            account=asked.account, gpus_milli=gpus_milli, hold_gpu_ms=gpus_milli * hold_s, reason="test",
            expires_at=instant(self.now_s + 1800) if hold_s else None, org_seq=1,
        )  # fmt: skip
        self.tell(fact, self.now_s)

    def state(self) -> ClusterState:
        return read_state(self.reader, "alpha", self.now_s, self.config)


@dataclass
class Oracle:
    """What full cycles say, one for each submission, on what the one before ordered."""

    state: ClusterState
    config: PolicyConfig
    cycle: Cycle
    classes: dict[str, str] = field(default_factory=dict)

    def submitted(self, book: Book, names: list[str]) -> tuple[list[Any], list[Any]]:
        """Return decisions and reservations, as an amendment publishes them."""
        read = {one.workload: one for one in book.state().pending}
        stated: dict[str, Any] = {}
        for name in names:
            self.state = with_submission(
                carried_out(self.state, self.cycle, self.config), read[name], book.now_s
            )
            self.cycle = run_cycle(self.state, self.config)
            self.note()
            for one in as_json(self.cycle)["decisions"]:
                if one["action"] == "start" or (one["action"] == "wait" and one["workload"] == name):
                    stated[one["workload"]] = one
        published = as_json(self.cycle)
        leaving = [one for one in published["decisions"] if one["action"] == "preempt"]
        return [*stated.values(), *leaving], list(published["reservations"])

    def note(self) -> None:
        """Keep in which class each start runs."""
        self.classes |= {
            one.workload: getattr(one, "klass", None) or ""
            for one in self.cycle.decisions
            if one.action is Action.START
        }

    @property
    def takes_from_a_start(self) -> bool:
        """Whether somebody has to leave who was ordered to start and has no name yet."""
        return any(
            one.action is Action.PREEMPT and getattr(one, "run", None) == "" for one in self.cycle.decisions
        )


def recorded(book: Book) -> tuple[Base, Oracle]:
    state, sequences = book.state(), queries.sequences(book.reader)
    prepared = prepare(state, book.config)
    decided = Decided.of(state, book.config, sequences, prepared.cycle)
    assert record(book.writer, decided, clock=book.clock, calendar=CALENDAR) is None
    book.order(list(decided.issued.record["decisions"]))
    oracle = Oracle(state, book.config, prepared.cycle)
    oracle.note()
    return Base.of(decided.issued, state, prepared, digest=decided.issued.input_digest), oracle


def check(book: Book, oracle: Oracle, base: Base, found: Amended) -> None:
    """Compare an amendment, if there is one, with the oracle, and record it."""
    if found.fact is None:
        return
    decisions, reservations = oracle.submitted(book, found.fact.submissions)
    assert found.fact.record["decisions"] == decisions
    assert found.fact.record["reservations"] == reservations
    assert record_amendment(
        book.writer, found.fact, found.notices, base.cycles, at_s=found.at_s, clock=book.clock, calendar=CALENDAR
    )  # fmt: skip
    book.order(found.fact.record["decisions"])


@few
@given(seed=st.integers(0, 2**32))
def test_amendments_say_what_full_cycles_on_the_carried_out_state_would(empty: sa.Engine, seed: int) -> None:
    draw = random.Random(seed)
    with empty.connect() as connection, connection.begin() as transaction:
        config = PolicyConfig(
            quantum_s=draw.choice((60, 900)),
            window_s=draw.choice((3600, 7 * 86_400)),
            unit=draw.choice(("physical", "weighted")),
            division=draw.choice(("deficit", "credits")),
        )
        book = Book(Reader(connection), Writer(connection), draw, config)
        book.begin()
        base, oracle = recorded(book)
        ids = [base.issued.cycle]
        for _ in range(draw.randrange(1, 7)):
            book.now_s += draw.choice((1, 1, 7, 30))
            for name in draw.sample(sorted(book.ordered), draw.randint(0, len(book.ordered))):
                book.carry_out(name, oracle.classes)
            if draw.random() < 0.3:
                book.tell(heartbeat.Heartbeat(cluster="alpha"), book.now_s)
            new = [
                book.submit(book.now_s - draw.choice((0, 0, 5))) for _ in range(draw.choice((0, 1, 1, 1, 3)))
            ]
            found = amend(book.reader, base, book.now_s)
            if found is None:  # the oracle says whether that was called for
                waiting = {one.workload for one in book.state().pending}
                before = {one.workload for one in carried_out(oracle.state, oracle.cycle, config).pending}
                late = sorted(waiting - before - oracle.classes.keys() - set(new))
                oracle.submitted(book, [*(name for name in new if name in waiting), *late])
                assert oracle.takes_from_a_start
                break
            check(book, oracle, base, found)
            base = found.base
            ids += [] if found.fact is None else [found.fact.cycle]
        else:
            same_work(book, oracle)
        book.tell(workload.Ended(cluster="alpha", workload="w1", reason="completed"), book.now_s)
        share = budget.ShareSet(account="org/a", share=7, reason="test", by="ada")
        book.tell(share, START_S - 60)
        for name in ids:
            assert replay(book.reader, name).difference is None
        word = cycles.newest_word(book.reader, "alpha", at_s=book.now_s)
        assert word is not None
        assert word.cycles == set(ids)
        transaction.rollback()


def same_work(book: Book, oracle: Oracle) -> None:
    """Once every order is carried out, the book says that what was taken to run does, and that the rest waits."""
    for name in sorted(book.ordered):
        book.carry_out(name, oracle.classes)
    state, taken = book.state(), carried_out(oracle.state, oracle.cycle, book.config)
    not_yet = {one.workload for one in state.pending if one.eligible_at_s > oracle.state.at_s}
    assert {one.workload for one in state.pending} - not_yet == {
        one.workload for one in taken.pending
    } - not_yet
    assert {
        (r.workload, r.account, r.gpus_milli, r.klass, tuple(sorted(r.placement.items())))
        for r in state.running
    } == {
        (r.workload, r.account, r.gpus_milli, r.klass, tuple(sorted(r.placement.items())))
        for r in taken.running
    }
    assert state.reservations == taken.reservations
