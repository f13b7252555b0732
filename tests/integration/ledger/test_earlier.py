"""A version that is over and was tampered with is named, though nothing of the present tells of it."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    ended,
    registered,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import Reader, Writer, reading
from gpuledger.events.decision import DecisionMade
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import rebuild

MADE_UP = (
    "INSERT INTO ledger.segments (book, workload, run, account, class, user_token, gpus_milli, hosts, from_at, to_at,"
    " estimated, since_seq, until_seq) SELECT book, 'w9', run, account, class, user_token, gpus_milli, hosts, from_at,"
    " to_at, estimated, 1, 9 FROM ledger.segments WHERE workload = 'w2' AND until_seq IS NULL"
)
SECOND = dt.timedelta(seconds=1)


@pytest.fixture(scope="module")
def corrected(shared_ledger: Ledger) -> Ledger:
    """Each batch a second after the one before; each corrects what an earlier one told, in every versioned table."""
    start = int(NOON.timestamp()) - 2 * HOUR
    admitted = DecisionMade(
        cluster=CLUSTER, workload="w3", attempt=1, account="org/vision", klass="allocated", gpus_milli=8000,
        hold_gpu_ms=8 * GPU_HOUR, reason="test", expires_at=NOON,
    )  # fmt: skip
    batches = [
        [*run_of(0, HOUR), told(5, submitted("w2"))],
        [told(0, registered("h1", 8)), told(1, registered("h2", 4))],
        [told(9, started("w2")), told(start, submitted("w3"))],
        [told(start, admitted)],
        [told(1800, ended(), source="reconcile/x"), told(start, started("w3"))],
        [told(HOUR, registered("h1", 8, state="unhealthy"))],
        [told(50, ended("w2"))],
    ]
    for batch in batches:
        shared_ledger.append(*batch)
        shared_ledger.clock.at += SECOND
    return shared_ledger


def differences(reader: Reader) -> tuple[str, ...]:
    return rebuild.check(reader, Calendar()).differences


def test_nothing_is_named_before_and_after_a_rebuild(corrected: Ledger) -> None:
    with reading(corrected.engine) as reader:
        assert differences(reader) == ()
    with corrected.trial() as connection:
        rebuild.rebuild(Writer(connection), Calendar())
        assert differences(Reader(connection)) == ()


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("run", "UPDATE ledger.segments SET gpus_milli = 9000 WHERE workload = 'w1' AND until_seq IS NOT NULL"),
        ("run", "UPDATE ledger.segments SET account = 'org/x' WHERE workload = 'w2' AND until_seq IS NOT NULL"),
        ("run", "UPDATE ledger.segments SET since_seq = 99 WHERE workload = 'w2' AND until_seq IS NULL"),
        ("run", "UPDATE ledger.segments SET until_seq = until_seq - 2 WHERE workload = 'w1' AND until_seq > 0"),
        ("run", "DELETE FROM ledger.segments WHERE workload = 'w1' AND until_seq IS NOT NULL"),
        (
            "run",
            MADE_UP,
        ),
        ("wait", "UPDATE ledger.waits SET priority = 7 WHERE workload = 'w2' AND until_seq IS NOT NULL"),
        ("wait", "DELETE FROM ledger.waits WHERE until_seq IS NOT NULL"),
        ("hold", "UPDATE ledger.holds SET gpus_milli = 1000 WHERE until_seq IS NOT NULL"),
        ("hold", "DELETE FROM ledger.holds WHERE until_seq IS NOT NULL"),
        ("host", "UPDATE ledger.hosts SET gpus = 16 WHERE until_seq IS NOT NULL"),
        ("host", "DELETE FROM ledger.hosts WHERE until_seq IS NOT NULL"),
    ],
)  # fmt: skip
def test_an_old_version_that_was_changed_dropped_or_made_up_is_named_and_mended(
    corrected: Ledger, kind: str, statement: str
) -> None:
    with corrected.trial() as connection:
        assert connection.exec_driver_sql(statement).rowcount > 0
        found = differences(Reader(connection))
        assert found
        assert all(line.startswith(f"{kind} as of row ") for line in found), found
        rebuild.rebuild(Writer(connection), Calendar())
        assert differences(Reader(connection)) == ()


@pytest.mark.parametrize("table", ["segments", "waits"])
@pytest.mark.parametrize("workload", ["w1", "w2"])
def test_what_first_stood_with_the_newest_batch_but_says_later_is_named(
    ledger: Ledger, table: str, workload: str
) -> None:
    """A read as of now would not find it."""
    for name in ("w1", "w2"):
        ledger.append(told(0, submitted(name)), told(60, started(name)), told(HOUR, ended(name)))
        ledger.clock.at += SECOND
    late = f"UPDATE ledger.{table} SET since_seq = since_seq + 1000 WHERE workload = '{workload}'"
    with ledger.trial(late) as connection:
        assert [said for said in differences(Reader(connection)) if " missing: " in said]
