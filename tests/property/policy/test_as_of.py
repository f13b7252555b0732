"""Law 6: what the policy and the books said at a recorded time, each read says for ever when it is asked as of then."""

import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.ledger.test_laws import _database

from gpuledger.database.engine import Reader, Writer
from gpuledger.events import host, workload
from gpuledger.events.budget import AccountCreated, Granted, OverdraftSet, PolicyChanged, ShareSet
from gpuledger.events.closing import LedgerTicked
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.events.mapping import MappingRule
from gpuledger.events.registry import Fact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant, seconds
from gpuledger.kernel.errors import GpuledgerError
from gpuledger.ledger import admission, health_states, knobs, queries, remapping
from gpuledger.ledger.append import append
from gpuledger.ledger.as_of import heads_at, seq_of, vector_of
from gpuledger.ledger.closing import close_period
from gpuledger.ledger.incident_report import incidents
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.movements import movements
from gpuledger.ledger.policies import bring_up_to_date
from gpuledger.policy.cycle import run_cycle
from gpuledger.policy.directives import directives
from gpuledger.policy.kept import latest_cycle
from gpuledger.policy.quotes import Request
from gpuledger.policy.quoting import ask_quote
from gpuledger.policy.reading import read_state
from gpuledger.policy.recording import Decided, record
from gpuledger.policy.upcoming import upcoming
from gpuledger.policy.why import why

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=max(settings().max_examples // 6, 3), deadline=None)
EVE = dt.datetime(2026, 11, 30, 21, tzinfo=dt.UTC)
"""Three hours before a period's edge."""
STEP = dt.timedelta(minutes=40)
CALENDAR = Calendar()
NAMES = ("w0", "w1", "w2")
HOUR_GPU_MS = 3_600_000

KINDS = (
    "submit", "submit", "start", "start", "end", "end", "admit", "cycle", "cycle", "tick", "grant", "share", "hard",
    "card", "mapping", "cap", "host", "close",
)  # fmt: skip
steps = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES), st.integers(0, 7)), min_size=3, max_size=12
)


@pytest.fixture(scope="module")
def empty(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database that each example leaves as it found it."""
    yield from _database(postgres, template_database, "as_of_policies")


class World:
    """A cluster in one transaction, and what happens to it."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection, self.reader, self.writer = connection, Reader(connection), Writer(connection)
        self.now = EVE
        self._told = 0
        for account in ("org", "org/a", "org/b"):
            self.tell(ORG_BOOK, AccountCreated(account=account))
        self.tell("c", host.Registered(cluster="c", host="h1", gpus=8, gpu_model="x"))
        self.tell("c", self._grant("org/a", "2026-11", 40))

    def tell(self, book: str, data: Fact, back_s: int = 0) -> None:
        self._told += 1
        event, _ = make(id=f"e{self._told}", source="t", at_s=seconds(self.now) - back_s, data=data)
        append(self.writer, book, [event], clock=FixedClock(self.now), calendar=CALENDAR)

    def policy(self, **keys: Any) -> None:  # noqa: ANN401
        self.tell(ORG_BOOK, PolicyChanged(by="t", reason="t", **keys))
        bring_up_to_date(self.writer, "c", clock=FixedClock(self.now), calendar=CALENDAR)

    def _grant(self, account: str, period: str, hours: int) -> Granted:
        return Granted(
            account=account, cluster="c", period=period, gpu_ms=hours * HOUR_GPU_MS, reason="t", by="t",
            rollover="all" if hours % 2 else None, expires_at=instant(seconds(EVE) + 27 * 3600 + hours * 86_400),
        )  # fmt: skip

    def step(self, kind: str, name: str, n: int) -> None:
        """Let one thing happen; what is refused does not."""
        account = ("org/a", "org/b", "else/x")[n % 3]
        happen: dict[str, Callable[[], object]] = {
            "submit": lambda: self.tell("c", workload.Submitted(
                cluster="c", workload=name, account=account, user="-", gpus_milli=(n % 4 + 1) * 2000,
                minimum_runtime_s=n * 1800, time_limit_s=n * 7200 or None, priority=n)),
            "start": lambda: self.tell("c", workload.Started(
                cluster="c", workload=name, run="1", attempt=1, gpus_milli=(n % 2 + 1) * 2000, hosts=["h1"]), n * 300),
            "end": lambda: self.tell(
                "c", workload.Ended(cluster="c", workload=name, run="1", reason="completed"), n * 600),
            "admit": lambda: admission.admit(
                self.writer, "c", name, clock=FixedClock(self.now), calendar=CALENDAR),
            "cycle": self._cycle,
            "tick": lambda: self.tell("c", LedgerTicked(cluster="c")),
            "grant": lambda: self.tell("c", self._grant("org/a", ("2026-11", "2026-12")[n % 2], n)),
            "share": lambda: self.tell(ORG_BOOK, ShareSet(account="org/b", share=n, reason="t", by="t")),
            "hard": lambda: self.tell(ORG_BOOK, OverdraftSet(
                account="org/a", overdraft=("hard", "soft")[n % 2], reason="t", by="t")),
            "card": lambda: self.policy(policy="rate_card", weights={"x": 500 + 250 * n}),
            "mapping": lambda: self.policy(
                policy="mapping", rules=[MappingRule(cluster=(), account=(f"org/{'ab'[n % 2]}",), user=(), labels={})]),
            "cap": lambda: self.policy(policy="settings", settings={"protection_cap_s": 3600 * (n + 1)}),
            "host": lambda: self.tell("c", host.StateChanged(
                cluster="c", host="h1", gpus=8, gpu_model="x", state=("draining", "healthy")[n % 2])),
            "close": lambda: close_period(
                self.writer, "c", "2026-11", "t", clock=FixedClock(self.now), calendar=CALENDAR),
        }  # fmt: skip
        savepoint = self.connection.begin_nested()
        try:
            happen[kind]()
        except GpuledgerError:
            savepoint.rollback()
        else:
            savepoint.commit()

    def _cycle(self) -> None:
        at_s = seconds(self.now)
        config = read_config(self.reader, "c", at_s)
        state = read_state(self.reader, "c", at_s, config)
        decided = Decided.of(state, config, queries.sequences(self.reader), run_cycle(state, config))
        record(self.writer, decided, clock=FixedClock(self.now), calendar=CALENDAR)


def said(reader: Reader, now: dt.datetime, as_of: dt.datetime | None) -> dict[str, object]:
    """What each read says at a moment, live, or as of it."""
    at_s, vector = seconds(now), vector_of(reader, as_of)
    seq, org_seq = seq_of(vector, "c"), seq_of(vector, ORG_BOOK)
    work = Request(account="org/a", gpus_milli=4000, minimum_runtime_s=3 * 3600)
    made = remapping.versions(reader, org_seq=org_seq)
    reads: dict[str, Callable[[], object]] = {
        **{
            f"why {name}": lambda name=name: why(  # type: ignore[misc]
                reader, name, cluster="c", at_s=at_s, as_of=as_of, what_if=True
            ).as_json()
            for name in NAMES
        },
        "quote": lambda: ask_quote(
            reader, "c", work, at_s=at_s, calendar=CALENDAR, runtime_s=30 * 3600, as_of=as_of
        ).as_json(),
        "calendar": lambda: upcoming(reader, "c", at_s=at_s, calendar=CALENDAR, as_of=as_of).as_json(),
        "allocations": lambda: latest_cycle(reader, "c", at_s=at_s, seq=seq),
        "directives": lambda: directives(reader, "c", now_s=at_s, vector=vector),
        "unmapped": lambda: remapping.unmapped(reader, at_s, as_of=as_of),
        "mapping": lambda: remapping.survey(reader, made, at_s, CALENDAR, vector=vector),
        "rate card": lambda: queries.rate_card(reader, org_seq),
        "settings": lambda: knobs.versions(reader, org_seq=org_seq),
        "xid table": lambda: health_states.tables(reader, org_seq=org_seq).at(at_s),
        "movements": lambda: movements(reader, "org/a", "c", until=as_of),
        "incidents": lambda: incidents(reader, "c", as_of=as_of),
        "heads": lambda: queries.book_heads(reader) if as_of is None else heads_at(reader, as_of),
    }
    found: dict[str, object] = {}
    for name, read in reads.items():
        try:
            found[name] = repr(read())
        except GpuledgerError as error:
            found[name] = type(error).__name__
    return found


@few
@given(steps=steps, randomness=st.randoms(use_true_random=False))
def test_what_each_read_said_then_it_says_for_ever(
    empty: sa.Engine, steps: list[tuple[str, str, int]], randomness: random.Random
) -> None:
    with empty.connect() as connection, connection.begin() as transaction:
        world = World(connection)
        remembered = []
        for kind, name, n in steps:
            world.now += STEP
            world.step(kind, name, n)
            if randomness.random() < 0.7:
                then = world.now + dt.timedelta(seconds=30)
                remembered.append((then, said(world.reader, then, None)))
        asked = [(then, said(world.reader, then, then)) for then, _ in remembered]
        transaction.rollback()
    differing = [
        (then, name, live[name], answer)
        for (then, live), (_, found) in zip(remembered, asked, strict=True)
        for name, answer in found.items()
        if live[name] != answer
    ]
    assert differing == []
