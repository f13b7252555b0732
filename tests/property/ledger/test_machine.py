"""Law 3 as a machine: whatever is told next, what stands in the book is what the oracle works out from all of it.

Facts come one by one, several at once, late, again, and against each other; the book's clock ticks between them, and
what a tick has charged already is taken back, moved to another account or cut at another moment by the next fact.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.property.ledger import oracle
from tests.property.ledger.oracle import Fact
from tests.property.ledger.test_laws import _database, lines
from tests.property.ledger.workloads import (
    ACCOUNTS,
    MOMENTS,
    SPAN_S,
    changes,
    distinct,
    event_of,
    offsets,
    run_claims,
    starts,
    stops,
    submissions,
    updates,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import Event, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import EPOCH, FixedClock
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import AuditQuery, verify

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

LEGS = """
    SELECT commodity, pot, account, workload, run, day::text, sum(amount)::bigint FROM (
        SELECT commodity, credit_pot AS pot, credit_account AS account, workload, run, effective_on AS day, amount
        FROM ledger.postings WHERE book = %s
        UNION ALL
        SELECT commodity, debit_pot, debit_account, workload, run, effective_on, -amount
        FROM ledger.postings WHERE book = %s) AS legs
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(amount) <> 0
"""
EXAMPLES = {"short": 20, "full": 500}
STEPS = 25

books = count(1)
workloads = st.sampled_from(["w0", "w1", "w2"])
runs = st.sampled_from(["r0", "r1"])


class BookOfFacts(RuleBasedStateMachine):
    """A book of a real ledger, and the list of all facts that it was told."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__()
        self.engine = engine
        self.cluster = f"machine-{next(books)}"
        self.facts: list[Fact] = []
        self.events: list[Event] = []
        self.ticked_s = 0

    @initialize(moment=st.sampled_from(MOMENTS))
    def begin(self, moment: tuple[str, int]) -> None:
        self.zone, self.base_s = moment

    @rule(workload=workloads, claim=submissions)
    def submitted(self, workload: str, claim: tuple[Any, ...]) -> None:
        self.tell(self.fact(workload, None, claim))

    @rule(workload=workloads, claim=updates)
    def updated(self, workload: str, claim: tuple[Any, ...]) -> None:
        self.tell(self.fact(workload, None, claim))

    @rule(workload=workloads, run=runs, claim=starts)
    def started(self, workload: str, run: str, claim: tuple[Any, ...]) -> None:
        self.tell(self.fact(workload, run, claim))

    @rule(workload=workloads, run=runs, claim=changes)
    def resized_suspended_or_of_another_class(self, workload: str, run: str, claim: tuple[Any, ...]) -> None:
        self.tell(self.fact(workload, run, claim))

    @rule(workload=workloads, run=runs, claim=stops)
    def ended_preempted_or_requeued(self, workload: str, run: str, claim: tuple[Any, ...]) -> None:
        self.tell(self.fact(workload, run, claim))

    @rule(workload=workloads, offset_s=offsets)
    def over_without_a_run(self, workload: str, offset_s: int) -> None:
        self.tell(self.fact(workload, None, ("ended", offset_s, "test/stream", {"reason": "cancelled"})))

    @precondition(lambda self: any(fact.kind == "submitted" for fact in self.facts))
    @rule(data=st.data(), account=st.sampled_from(ACCOUNTS), later_s=st.integers(1, SPAN_S))
    def another_account_pays(self, data: st.DataObject, account: str, later_s: int) -> None:
        """The stream tells a submission anew: for all of a run that goes on, what was charged of it included."""
        before = data.draw(st.sampled_from([fact for fact in self.facts if fact.kind == "submitted"]))
        details = {**before.details, "account": account}
        self.tell(before._replace(at_s=before.at_s + later_s, details=details))

    @rule(workload=workloads, run=runs, claims=run_claims)
    def a_whole_run_at_once(self, workload: str, run: str, claims: tuple[Any, ...]) -> None:
        self.tell(*(self.fact(workload, run, claim) for kind in claims for claim in kind))

    @rule(workload=workloads, run=runs, asked=submissions, start=starts)
    def a_run_that_goes_on(
        self, workload: str, run: str, asked: tuple[Any, ...], start: tuple[Any, ...]
    ) -> None:
        self.tell(self.fact(workload, None, asked), self.fact(workload, run, start))

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        repeated = data.draw(st.lists(st.sampled_from(self.events), min_size=1, max_size=6))
        assert self.append(repeated) == (0, len(repeated))

    @rule(offset_s=st.integers(-SPAN_S // 8, 2 * SPAN_S))
    def tick(self, offset_s: int) -> None:
        at_s = self.base_s + offset_s
        event, _ = make(
            id=f"tick/{at_s}", source="test/clock", at_s=at_s, data=LedgerTicked(cluster=self.cluster)
        )
        if event not in self.events:
            assert self.append([event]) == (1, 0)
            self.events.append(event)
        self.ticked_s = max(self.ticked_s, at_s)

    @invariant()
    def what_stands_follows_from_all_that_was_told(self) -> None:
        with reading(self.engine) as reader:
            rows = lines(reader, LEGS, self.cluster)
        found = {tuple(key): amount for *key, amount in rows}
        expected: dict[tuple[object, ...], int] = {}
        for (code, account, *of_run), gpu_ms in oracle.net(
            self.facts, getattr(self, "zone", "UTC"), self.ticked_s
        ).items():
            pots = {"charge": (("budget", account), ("spent", account)),
                    "unallocated": (("free", "~"), ("unallocated", account))}[code]  # fmt: skip
            for commodity, weight in (("gpu_ms", 1), ("gpu_ms_weighted", 1000)):
                for sign, pot in zip((-1, 1), pots, strict=True):
                    key = (commodity, *pot, *of_run)
                    expected[key] = expected.get(key, 0) + sign * gpu_ms * weight
        assert found == {key: amount for key, amount in expected.items() if amount}

    def fact(self, workload: str, run: str | None, claim: tuple[Any, ...]) -> Fact:
        kind, offset_s, source, details = claim
        absolute = {k: self.base_s + v if k == "eligible_s" else v for k, v in details.items()}
        return Fact(kind, self.base_s + offset_s, source, workload, run, absolute)

    def tell(self, *facts: Fact) -> None:
        """Append the facts in one batch, but for those that only a digest could rank."""
        known = len(self.facts)
        self.facts = distinct([*self.facts, *facts])
        fresh = [event_of(n, fact, self.cluster) for n, fact in enumerate(self.facts) if n >= known]
        assert self.append(fresh) == (len(fresh), 0)
        self.events += fresh

    def append(self, events: Sequence[Event]) -> tuple[int, int]:
        with writing(self.engine) as writer:
            done = append(writer, self.cluster, events, clock=FixedClock(EPOCH), calendar=Calendar(self.zone))
        return len(done.accepted), done.repeated

    def teardown(self) -> None:
        with reading(self.engine) as reader:
            (audit,) = verify(reader, AuditQuery(self.cluster)).books or [None]
        assert audit is None or audit.first_bad is None


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each has a book of its own."""
    yield from _database(postgres, template_database, "machine_of_books")


@pytest.mark.timeout(3600)
def test_law_3_whatever_is_told_next(engine: sa.Engine, test_form: str) -> None:
    run_state_machine_as_test(
        lambda: BookOfFacts(engine),
        settings=settings(
            max_examples=EXAMPLES[test_form],
            stateful_step_count=STEPS,
            phases=(
                Phase.generate,
            ),  # to make a failure smaller takes minutes, and the steps are printed anyhow
            deadline=None,
        ),
    )
