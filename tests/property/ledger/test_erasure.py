"""Orders of any people, told again and again while these people are erased: each moves its amount once."""

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.database.engine import Reader, make_engine, reading, writing
from gpuledger.events.budget import Granted, Part, Transferred, Word
from gpuledger.events.envelope import Event, make
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.append import append
from gpuledger.ledger.audit import AuditQuery, verify
from gpuledger.ledger.erasure import erase

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

few = settings(max_examples=settings().max_examples // 4, deadline=None)
numbers = count(1)
CLOCK, CALENDAR = FixedClock(instant(40 * 86_400)), Calendar()
PEOPLE = ("Ada Lovelace", "zoë", "grace")

people = st.sampled_from([*PEOPLE, *Part])
reasons = st.sampled_from(["Ada Lovelace asked for it", "(aside)", "zoë", *Word])
orders = st.tuples(st.sampled_from(["grant", "transfer"]), people, reasons, st.integers(1, 50))


@pytest.fixture(scope="module")
def engine(postgres: "EmbeddedPostgres", template_database: str) -> Iterator[sa.Engine]:
    """A database for all examples; each has a book of its own in it."""
    server = sa.create_engine(postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE erasures_of_books TEMPLATE {template_database}")
    engine = make_engine(postgres.url("erasures_of_books"))
    yield engine
    engine.dispose()


def event_of(cluster: str, number: int, kind: str, by: str, reason: str, amount: int) -> Event:
    common = {
        "account": "a",
        "cluster": cluster,
        "period": "1970-01",
        "gpu_ms": amount,
        "by": by,
        "reason": reason,
    }
    fact = Granted(**common) if kind == "grant" else Transferred(to="b", **common)  # type: ignore[arg-type]
    return make(id=f"{cluster}/{number}", source="test", at_s=0, data=fact)[0]


def forget(engine: sa.Engine, name: str) -> None:
    try:
        with writing(engine) as writer:
            erase(writer, name)
    except NotFound:
        pass  # nobody has told of that person yet


def moved(reader: Reader, cluster: str) -> Counter[str]:
    rows = reader.exec_driver_sql(
        "SELECT credit_account, sum(amount)::bigint FROM ledger.postings WHERE book = %s GROUP BY 1",
        (cluster,),
    )
    return Counter({str(account): int(amount) for account, amount in rows})


def head(reader: Reader, cluster: str) -> tuple[object, ...]:
    rows = reader.exec_driver_sql("SELECT last_seq, head FROM ledger.books WHERE book = %s", (cluster,))
    return tuple(rows.one())


@few
@given(said=st.lists(orders, min_size=1, max_size=8), randomness=st.randoms(use_true_random=False))
def test_each_order_counts_once_whoever_is_erased_in_between(
    engine: sa.Engine, said: list[tuple[str, str, str, int]], randomness: random.Random
) -> None:
    cluster = f"erasures-{next(numbers)}"
    events = [event_of(cluster, number, *order) for number, order in enumerate(said)]
    steps: list[Event | str] = [*events, *randomness.choices(events, k=4), *PEOPLE, *PEOPLE]
    randomness.shuffle(steps)
    for step in steps:
        if isinstance(step, str):
            forget(engine, step)
        else:
            with writing(engine) as writer:
                append(writer, cluster, [step], clock=CLOCK, calendar=CALENDAR)

    with reading(engine) as reader:
        before = head(reader, cluster)
    for name in PEOPLE:
        forget(engine, name)

    expected: Counter[str] = Counter()
    for kind, _, _, amount in said:
        expected["a" if kind == "grant" else "b"] += amount * 1000
    with reading(engine) as reader:
        assert moved(reader, cluster) == expected
        assert head(reader, cluster) == before
        assert before[0] == len(events)
        assert verify(reader, AuditQuery(cluster)).ok
        kept = "\n".join(
            str(row) for row in reader.exec_driver_sql("SELECT j::text FROM ledger.journal AS j")
        )
        assert not [name for name in PEOPLE if name in kept]
