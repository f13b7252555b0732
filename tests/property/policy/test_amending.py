"""Amendments against full cycles: whatever is submitted, carried out and ends between two cycles, in a real book."""

import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
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
from gpuledger.policy.amending import FEW, Amended, Base, amend
from gpuledger.policy.cycle import Action, Cycle, run_cycle
from gpuledger.policy.incremental import carried_out, prepare, with_submission
from gpuledger.policy.published import as_json
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided, record, record_amendment
from gpuledger.policy.replaying import replay
from gpuledger.policy.state import ClusterState, PendingWorkload, PolicyConfig

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=max(settings().max_examples // 3, 30), deadline=None)
CALENDAR = Calendar()
START_S = 1_796_083_200
"""2026-12-01T00:00:00Z."""

ACCOUNTS = ("org/a", "org/b/c", "org/b/d")
HOSTS = {"h1": 8, "h2": 8, "h3": 8, "h4": 4}
MODELS = {name: "B300" if name == "h4" else "H100" for name in HOSTS}


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
    runs: dict[str, str] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    admitted: set[str] = field(default_factory=set)
    saved: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)

    @property
    def clock(self) -> FixedClock:
        return FixedClock(instant(self.now_s))

    def tell(self, fact: Fact, at_s: int) -> None:
        self.told += 1
        event, _ = make(id=str(self.told), source="p", at_s=at_s, data=fact)
        append(self.writer, book_of(fact), [event], clock=self.clock, calendar=CALENDAR)

    def begin(self) -> None:
        """A rate card, hosts, accounts, runs and a queue."""
        self.weights = {"H100": self.draw.choice((500, 1000, 2000)), "B300": 3000}
        self.tell(budget.PolicyChanged(policy="rate_card", weights=self.weights, by="ada", reason="test"), 0)
        for account in dict.fromkeys(node for path in ACCOUNTS for node in lineage(path)):
            self.tell(budget.AccountCreated(account=account), 0)
            share = budget.ShareSet(account=account, share=self.draw.randint(1, 4), reason="test", by="ada")
            self.tell(share, 0)
        for name, gpus in HOSTS.items():
            fact = host.Registered(cluster="alpha", host=name, gpus=gpus, gpu_model=MODELS[name])
            self.tell(fact, START_S - 9 * 86_400)
        free = dict(HOSTS)
        for n in range(self.draw.randrange(6)):
            where = self.draw.choice(list(free))
            gpus = min(self.draw.choice((1, 2, 4, 8)), free[where])
            free[where] -= gpus
            since_s = START_S - self.draw.choice((300, 2000, 9000))
            if gpus:
                name = self.submit(since_s, gpus)
                if self.draw.random() < 0.5 and self.asked[name].minimum_runtime_s:
                    self.admit(name, gpus * 1000, "allocated", at_s=since_s)
                    self.admitted.add(name)
                self.runs[name] = f"r{n}"
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
        attempt = self.attempts[name] = self.attempts.get(name, 0) + 1
        if self.draw.random() < 0.5:
            self.admit(name, sum(hosts.values()), klass, attempt=attempt)
        self.runs[name] = f"at{attempt}"
        fact = workload.Started(
            cluster="alpha", workload=name, run=self.runs[name], attempt=attempt, gpus_milli=sum(hosts.values()),
            hosts=sorted(hosts), host_gpus_milli=hosts,
            klass="allocated" if classes[name] == "allocated" else "unallocated",
        )  # fmt: skip
        self.tell(fact, self.now_s)
        if self.draw.random() < 0.3:
            self.tell(workload.Ready(cluster="alpha", workload=name, run=self.runs[name]), self.now_s)

    def happens(self) -> list[str]:
        """Let runs end, be preempted or save their work, and let work be withdrawn; return whose GPUs are free."""
        ended: list[str] = []
        for name, run in sorted(self.runs.items()):
            match self.draw.choice(("goes on",) * 6 + ("ends", "is preempted", "is saved")):
                case "ends":
                    self.tell(
                        workload.Ended(cluster="alpha", workload=name, run=run, reason="completed"),
                        self.now_s,
                    )
                case "is preempted":
                    self.attempts.setdefault(name, 1)
                    self.tell(
                        workload.Preempted(cluster="alpha", workload=name, run=run, reason="test"), self.now_s
                    )
                case "is saved":
                    self.tell(workload.Checkpointed(cluster="alpha", workload=name, run=run), self.now_s)
                    self.saved.append(name)
                    continue
                case _:
                    continue
            del self.runs[name]
            ended.append(name)
        for name in sorted(self.asked.keys() - self.runs.keys() - self.ordered.keys() - set(ended)):
            if self.draw.random() < 0.04 and name in {one.workload for one in self.state().pending}:
                self.tell(workload.Ended(cluster="alpha", workload=name, reason="cancelled"), self.now_s)
                ended.append(name)
        return ended

    def admit(
        self, name: str, gpus_milli: int, klass: str, *, attempt: int = 1, at_s: int | None = None
    ) -> None:
        """Set aside what protects a start, as ``admit`` does."""
        asked = self.asked[name]
        hold_s = (asked.minimum_runtime_s or 0) if klass == "allocated" else 0
        at_s = self.now_s if at_s is None else at_s
        fact = decision.DecisionMade(
            cluster="alpha", workload=name, attempt=attempt,
            klass="allocated" if klass == "allocated" else "unallocated", account=asked.account,
            gpus_milli=gpus_milli, hold_gpu_ms=gpus_milli * hold_s, reason="test",
            expires_at=instant(at_s + 1800) if hold_s else None, org_seq=1,
        )  # fmt: skip
        self.tell(fact, at_s)

    def state(self) -> ClusterState:
        return read_state(self.reader, "alpha", self.now_s, self.config)


@dataclass
class Oracle:
    """What full cycles say, one for each submission, on what the one before ordered."""

    state: ClusterState
    config: PolicyConfig
    cycle: Cycle
    classes: dict[str, str] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    took_from_a_start: bool = False
    asked: dict[str, PendingWorkload] = field(default_factory=dict)

    def submitted(self, book: Book, names: list[str], touched: set[str]) -> tuple[list[Any], list[Any]]:
        """Return decisions and reservations, as an amendment publishes them; without names those of ends alone."""
        read = {one.workload: one for one in book.state().pending}
        stated: dict[str, Any] = {}
        took = False
        self.state = carried_out(self.state, self.cycle, self.config)
        self.count()
        self.turn_over(book, touched)
        for name in names or [""]:
            if stated or name != (names or [""])[0]:
                self.state = carried_out(self.state, self.cycle, self.config)
                self.count()
            told = replace(self.state, at_s=book.now_s)
            self.state = with_submission(told, read[name], book.now_s) if name else told
            self.cycle = run_cycle(self.state, self.config)
            self.note()
            took = took or self.takes_from_a_start
            for one in as_json(self.cycle)["decisions"]:
                if one["action"] == "start" or (one["action"] == "wait" and one["workload"] == name):
                    stated[one["workload"]] = one
        self.took_from_a_start = took
        published = as_json(self.cycle)
        leaving = [one for one in published["decisions"] if one["action"] == "preempt"]
        return [*stated.values(), *leaving], list(published["reservations"])

    def turn_over(self, book: Book, touched: set[str]) -> None:
        """Take over from the book what runs and waits of some workloads; what the others had set aside is let go."""
        said = book.state()
        running = [run for run in said.running if run.workload in touched]
        names = {run.workload for run in running}
        released = Counter[str]()
        for run in self.state.running:
            if run.workload in touched - names:
                released[run.account] += self.held.pop(run.workload, 0)
        waiting = {one.workload for one in said.pending}
        self.state = replace(
            self.state,
            accounts=tuple(one.holding(-released[one.account]) for one in self.state.accounts),
            running=(*(run for run in self.state.running if run.workload not in touched), *running),
            pending=tuple(
                one for one in self.state.pending if one.workload not in touched or one.workload in waiting
            ),
        )

    def count(self) -> None:
        """Note what was set aside for those who were ordered."""
        for run in self.state.running:
            if run.run == "" and run.workload not in self.held:
                gang = self.asked[run.workload]
                seconds = run.protected_until_s - run.started_at_s
                self.held[run.workload] = gang.counted_gpu_ms(seconds)

    def note(self) -> None:
        """Keep in which class each start runs, and what it asked for."""
        self.asked |= {one.workload: one for one in self.state.pending}
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


def check(book: Book, oracle: Oracle, base: Base, found: Amended, touched: set[str]) -> None:
    """Compare an amendment, if there is one, with the oracle, and record it."""
    assert found.fact is not None
    decisions, reservations = oracle.submitted(book, found.fact.submissions, touched)
    assert found.fact.record["decisions"] == decisions
    assert found.fact.record["reservations"] == reservations
    assert record_amendment(
        book.writer, found.fact, found.notices, base.cycles, at_s=found.at_s, clock=book.clock, calendar=CALENDAR
    )  # fmt: skip
    book.order(found.fact.record["decisions"])


def holds(book: Book, state: ClusterState) -> dict[str, int]:
    """Return what a state counts as set aside for each run of an admission, weighed by the model that was asked for."""
    card = book.weights if book.config.unit == "weighted" else {}
    found = {}
    for run in state.running:
        left_s = max(run.protected_until_s - state.at_s, 0) if run.workload in book.admitted else 0
        weight = card.get(book.asked[run.workload].gpu_model or "", 1000)
        found[run.workload] = run.gpus_milli * left_s * weight // 1000
    return found


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
        oracle.held |= holds(book, oracle.state)
        assert sum(oracle.held.values()) == sum(account.held_gpu_ms for account in oracle.state.accounts)
        ids, touched = [base.issued.cycle], set[str]()
        for _ in range(draw.randrange(1, 7)):
            after = look(book, oracle, base, touched)
            if after is None:
                break
            ids += sorted(after.cycles - base.cycles)
            base = after
        else:
            same_work(book, oracle, touched)
        book.tell(workload.Ended(cluster="alpha", workload="w1", reason="completed"), book.now_s)
        share = budget.ShareSet(account="org/a", share=7, reason="test", by="ada")
        book.tell(share, START_S - 60)
        for name in ids:
            assert replay(book.reader, name).difference is None
        word = cycles.newest_word(book.reader, "alpha", at_s=book.now_s)
        assert word is not None
        assert word.cycles == set(ids)
        transaction.rollback()


def look(book: Book, oracle: Oracle, base: Base, touched: set[str]) -> Base | None:
    """Let something happen, and compare what is amended with the oracle; None where a full cycle was called for."""
    draw = book.draw
    book.now_s += draw.choice((1, 1, 7, 30))
    begun = draw.sample(sorted(book.ordered), draw.randint(0, len(book.ordered)))
    for name in begun:
        book.carry_out(name, oracle.classes)
    if draw.random() < 0.3:
        book.tell(heartbeat.Heartbeat(cluster="alpha"), book.now_s)
    ended = book.happens() if draw.random() < 0.5 else []
    new = [book.submit(book.now_s - draw.choice((0, 0, 5))) for _ in range(draw.choice((0, 1, 1, 1, 3)))]
    touched |= {*begun, *ended, *book.saved}
    book.saved.clear()
    found = amend(book.reader, base, book.now_s)
    waited = {one.workload for one in carried_out(oracle.state, oracle.cycle, oracle.config).pending}
    late = sorted({one.workload for one in book.state().pending} - waited - book.ordered.keys())
    if found is None:  # the oracle says whether that was called for
        in_order = sorted(late, key=lambda one: (new.index(one) if one in new else len(new), one))
        oracle.submitted(book, in_order, touched)
        assert oracle.took_from_a_start or len(late) > FEW
        return None
    if found.fact is not None:
        assert sorted(found.fact.submissions) == late
        check(book, oracle, base, found, touched)
        if found.fact.changed:
            touched.clear()
    elif ended:  # nothing came of it
        decisions, reservations = deepcopy(oracle).submitted(book, [], touched)
        assert not [one for one in decisions if one["action"] == "start"]
        assert reservations == list(as_json(oracle.cycle)["reservations"])
    assert found.fact is not None or not late
    return found.base


def same_work(book: Book, oracle: Oracle, touched: set[str]) -> None:
    """Once every order is carried out, the book says that what was taken to run does, and that the rest waits."""
    book.now_s += 1
    for name in sorted(book.ordered):
        book.carry_out(name, oracle.classes)
    oracle.state = carried_out(oracle.state, oracle.cycle, book.config)
    oracle.turn_over(book, touched)
    state, taken = book.state(), oracle.state
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
