"""Fault checklist 1: any stream of commands and charges against a model in memory, after every step."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.database.engine import make_engine, reading, writing
from gpuledger.events import workload
from gpuledger.events.budget import AccountCreated, Granted, Transferred
from gpuledger.events.envelope import Event, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import AuditQuery, verify
from gpuledger.ledger.balances import BalanceQuery, balances
from gpuledger.ledger.commands import execute

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 4, deadline=None)
numbers = count(1)
CLOCK, CALENDAR = FixedClock(instant(40 * 86_400)), Calendar()
LEAVES = ("org/p/a", "org/p/b", "org/q")
PERIODS = ("1970-01", "1970-02")
START_S = {"1970-01": 0, "1970-02": 31 * 86_400}

amounts = st.integers(0, 50)
leaves, periods = st.sampled_from(LEAVES), st.sampled_from(PERIODS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), leaves, periods, amounts),
        st.tuples(st.just("limit"), st.sampled_from(["org", "org/p"]), periods, amounts),
        st.tuples(st.just("transfer"), st.tuples(leaves, leaves), periods, amounts),
        st.tuples(st.just("charge"), leaves, periods, amounts),
    ),
    min_size=1,
    max_size=12,
)


@dataclass
class Model:
    """What the balances must be: sums in dictionaries, nothing else."""

    granted: dict[tuple[str, str], int] = field(default_factory=dict)
    moved: dict[tuple[str, str], int] = field(default_factory=dict)
    charged: dict[tuple[str, str], int] = field(default_factory=dict)
    caps: dict[tuple[str, str], int] = field(default_factory=dict)

    def own(self, leaf: str, period: str) -> int:
        key = (leaf, period)
        return self.granted.get(key, 0) + self.moved.get(key, 0) - self.charged.get(key, 0)

    def available(self, leaf: str, period: str) -> int:
        rooms = [
            cap
            - sum(
                amount
                for (name, p), amount in self.charged.items()
                if p == period and name.startswith(node + "/")
            )
            for (node, p), cap in self.caps.items()
            if p == period and leaf.startswith(node + "/")
        ]
        return min([self.own(leaf, period), *rooms])

    def take(self, kind: str, who: str | tuple[str, str], period: str, amount: int) -> bool:
        """Change the sums; tell whether the ledger must agree to it."""
        match kind, who:
            case "charge", str():
                self.charged[who, period] = self.charged.get((who, period), 0) + amount
                return True
            case "transfer", (giver, getter):
                if giver == getter or not 0 < amount <= self.own(giver, period):
                    return False
                self.moved[giver, period] = self.moved.get((giver, period), 0) - amount
                self.moved[getter, period] = self.moved.get((getter, period), 0) + amount
                return True
            case _:
                assert isinstance(who, str)
                sums = self.granted if kind == "grant" else self.caps
                if amount:
                    sums[who, period] = sums.get((who, period), 0) + amount
                return amount > 0


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each has a book of its own in it."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE commands_of_books TEMPLATE {template_database}")
    engine = make_engine(postgres.url("commands_of_books"))
    accounts = [
        make(id=name, source="test", at_s=0, data=AccountCreated(account=name))[0]
        for name in ("org", "org/p", *LEAVES)
    ]
    with writing(engine) as writer:
        append(writer, "~org", accounts, clock=CLOCK, calendar=CALENDAR)
    yield engine
    engine.dispose()


def run_of(cluster: str, number: int, leaf: str, start_s: int, amount: int) -> list[Event]:
    """A run of one GPU that costs ``amount`` thousands of gpu_ms."""
    name = f"w{number}"
    facts = [
        (start_s, workload.Started(
            cluster=cluster, workload=name, run="r", attempt=1, gpus_milli=1000, hosts=["h"], account=leaf, user="ada",
        )),
        (start_s + amount, workload.Ended(cluster=cluster, workload=name, run="r", reason="completed")),
    ]  # fmt: skip
    return [
        make(id=f"{name}/{n}", source="test", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(facts)
    ]


def order(
    engine: sa.Engine, cluster: str, number: int, step: tuple[str, str | tuple[str, str], str, int]
) -> bool:
    kind, who, period, amount = step
    if kind == "charge":
        assert isinstance(who, str)
        with writing(engine) as writer:
            events = run_of(cluster, number, who, START_S[period] + 1000 * number, amount)
            append(writer, cluster, events, clock=CLOCK, calendar=CALENDAR)
        return True
    command: Granted | Transferred
    common = {"cluster": cluster, "period": period, "gpu_ms": amount * 1000, "reason": "test", "by": "test"}
    if kind == "transfer":
        if amount == 0:
            return False  # no such event: it does not decode
        command = Transferred(account=who[0], to=who[1], **common)  # type: ignore[arg-type]
    else:
        assert isinstance(who, str)
        command = Granted(account=who, limit=kind == "limit", **common)  # type: ignore[arg-type]
    try:
        with writing(engine) as writer:
            execute(writer, command, key=f"k{number}", clock=CLOCK, calendar=CALENDAR)
    except Refused:
        return False
    return True


@few
@given(stream=steps)
def test_every_balance_is_the_models_after_every_step(
    engine: sa.Engine, stream: list[tuple[str, str | tuple[str, str], str, int]]
) -> None:
    model, cluster = Model(), f"stream-{next(numbers)}"
    with writing(engine) as writer:  # the book exists
        append(writer, cluster, run_of(cluster, 0, LEAVES[0], 0, 0), clock=CLOCK, calendar=CALENDAR)
    for number, step in enumerate(stream, 1):
        assert order(engine, cluster, number, step) == model.take(*step), step
        with reading(engine) as reader:
            found = {(b.account, b.period): b for b in balances(reader, BalanceQuery(cluster), 40 * 86_400)}
        for leaf in LEAVES:
            for period in PERIODS:
                balance = found.get((leaf, period))
                own = balance.own_available_gpu_ms if balance else 0
                assert own == model.own(leaf, period) * 1000
                if balance:
                    assert balance.available_gpu_ms == model.available(leaf, period) * 1000
    with reading(engine) as reader:
        assert verify(reader, AuditQuery(cluster)).ok
