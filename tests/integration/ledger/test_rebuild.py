"""Law 11: everything but the journal can be dropped and comes back, and what differs is named."""

import pytest
import sqlalchemy as sa
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    ended,
    granted,
    registered,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import Reader, Writer, reading, writing
from gpuledger.events import budget, host
from gpuledger.events.workload import Requeued
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import rebuild
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.usage import By, UsageQuery, usage

TWICE = (
    "INSERT INTO ledger.segments (book, workload, run, account, class, user_token, gpus_milli, hosts, from_at,"
    " to_at, estimated, since_seq) SELECT book, workload, run, account, class, user_token, gpus_milli, hosts,"
    " from_at, to_at, estimated, since_seq FROM ledger.segments WHERE workload = 'w2'"
)
TABLES = ("balances", "segments", "waits", "hosts", "accounts", "shares", "organisation", "periods")


@pytest.fixture(scope="module")
def full(shared_ledger: Ledger) -> Ledger:
    """A ledger with something in every projection, corrections and superseded versions included."""
    ledger = shared_ledger
    ledger.append(
        told(0, budget.AccountCreated(account="org")),
        told(0, budget.AccountCreated(account="org/vision")),
        told(0, budget.ShareSet(account="org/vision", share=3, reason="test", by="test")),
        told(9, budget.ShareSet(account="org/vision", share=4, reason="test", by="test")),
        told(0, budget.PolicyChanged(policy="organisation", timezone="UTC", period="month")),
    )
    ledger.append(
        told(0, registered("h1", 8)),
        told(HOUR, registered("h1", 8, state="unhealthy")),
        told(2 * HOUR, host.Retired(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100")),
        told(0, registered("h2", 4)),
        told(0, granted("org/vision", "1970-01", 100 * GPU_HOUR)),
    )
    ledger.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", klass="unallocated"))
    ledger.append(told(1800, ended(), source="reconcile/x"))
    ledger.append(told(5, submitted("w3")))
    ledger.append(told(7, started("w3")))
    ledger.append(told(9, Requeued(cluster=CLUSTER, workload="w3", run="r1", reason="node")))
    with writing(ledger.engine) as writer:
        assert open_periods(writer, CLUSTER, clock=ledger.clock, calendar=ledger.calendar) == ["1970-01"]
    return ledger


class Trial:
    """What a rebuild and its check find inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self.reader, self.writer = Reader(connection), Writer(connection)

    def differences(self) -> tuple[str, ...]:
        return rebuild.check(self.reader, Calendar()).differences

    def digest(self) -> str:
        return rebuild.state_digest(self.reader)

    def mend(self) -> None:
        rebuild.rebuild(self.writer, Calendar())

    def in_force(self, table: str) -> list[str]:
        versioned = table in ("segments", "waits", "holds", "hosts")
        columns = "to_jsonb(t) - 'id' - 'since_seq'" if versioned else "to_jsonb(t)"
        where = "WHERE until_seq IS NULL" if versioned else ""
        sql = f"SELECT ({columns})::text FROM ledger.{table} AS t {where} ORDER BY 1"
        return [text for (text,) in self.reader.exec_driver_sql(sql)]


def test_an_untouched_ledger_agrees_with_its_journal(full: Ledger) -> None:
    with reading(full.engine) as reader:
        document = rebuild.check(reader, Calendar()).as_json()
    assert document == {"ok": True, "state_digest": full.digest(), "differences": []}


@pytest.mark.parametrize("table", TABLES)
def test_a_dropped_projection_is_noticed_and_comes_back_as_it_was(full: Ledger, table: str) -> None:
    with full.trial() as connection:
        trial = Trial(connection)
        before, digest = trial.in_force(table), trial.digest()
        assert before
        connection.exec_driver_sql(f"DELETE FROM ledger.{table}")
        assert trial.differences()
        trial.mend()
        assert trial.in_force(table) == before
        assert (trial.differences(), trial.digest()) == ((), digest)


def test_rebuilding_all_of_it_gives_the_same_state_digest_once_and_again(full: Ledger) -> None:
    with full.trial() as connection:
        trial = Trial(connection)
        digest = trial.digest()
        for table in TABLES:
            connection.exec_driver_sql(f"DELETE FROM ledger.{table}")
        assert trial.digest() != digest
        for _ in range(2):
            trial.mend()
            assert (trial.differences(), trial.digest()) == ((), digest)


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        (
            "balance",
            "UPDATE ledger.balances SET amount = amount + 1 WHERE pot = 'spent' AND commodity = 'gpu_ms'",
        ),
        (
            "balance",
            "INSERT INTO ledger.balances VALUES ('alpha', 'gpu_ms', 'org/x', '1970-01', 'spent', 'charge', 5)",
        ),
        ("run", "UPDATE ledger.segments SET gpus_milli = 9000 WHERE workload = 'w1' AND until_seq IS NULL"),
        ("run", "UPDATE ledger.segments SET hosts = '{h9}' WHERE workload = 'w1' AND until_seq IS NULL"),
        (
            "run",
            "UPDATE ledger.segments SET user_token = 'u-other' WHERE workload = 'w1' AND until_seq IS NULL",
        ),
        ("run", "UPDATE ledger.segments SET estimated = true WHERE workload = 'w1' AND until_seq IS NULL"),
        ("run", TWICE),
        ("wait", "UPDATE ledger.waits SET minimum_runtime_s = 0 WHERE workload = 'w3'"),
        ("host", "UPDATE ledger.hosts SET gpus = 16 WHERE host = 'h2'"),
        ("account", "UPDATE ledger.accounts SET path = 'org/sold' WHERE account = 'org/vision'"),
        ("share", "UPDATE ledger.shares SET share = 900"),
        ("organisation", "UPDATE ledger.organisation SET timezone = 'Asia/Tokyo'"),
        ("period", "UPDATE ledger.periods SET installed_gpu_ms = 1"),
    ],
)
def test_a_tampered_projection_is_named_and_mended(full: Ledger, kind: str, statement: str) -> None:
    with full.trial(statement) as connection:
        trial = Trial(connection)
        named = [line for line in trial.differences() if line.startswith(f"{kind} ")]
        assert named
        assert all(" missing: " in line or " not in the journal: " in line for line in named)
        trial.mend()
        assert trial.differences() == ()


def test_reports_as_of_an_earlier_time_say_the_same_after_a_rebuild(full: Ledger) -> None:
    moments = [
        moment for (moment,) in full.rows("SELECT max(recorded_at) FROM ledger.journal GROUP BY book, type")
    ]

    def reports(reader: Reader) -> list[list[tuple[str, int, int]]]:
        queries = [UsageQuery(by=By.ACCOUNT, as_of=moment, to_s=10 * HOUR) for moment in moments]
        found = [usage(reader, query, 10 * HOUR) for query in queries]
        return [[(r.key, r.gpu_ms, r.provisional_gpu_ms) for r in report.rows] for report in found]

    with full.trial() as connection:
        trial = Trial(connection)
        before = reports(trial.reader)
        trial.mend()
        assert reports(trial.reader) == before
    assert len({str(report) for report in before}) > 1


def test_the_state_digest_tells_an_open_run_from_an_ended_one(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()), told(0, started()))
    one = ledger.digest()
    ledger.append(told(HOUR, ended()))
    assert ledger.digest() != one


def test_the_writer_role_may_rebuild(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    digest = ledger.digest()
    with writing(ledger.engine) as writer:
        assert writer.exec_driver_sql("SELECT current_user").scalar() == "gpuledger_writer"
        rebuild.rebuild(writer, Calendar())
    assert ledger.digest() == digest


def test_a_balance_of_nothing_that_nothing_was_booked_to_is_named(full: Ledger) -> None:
    """It would be shown as an account's, and its period would be opened."""
    made_up = (
        "INSERT INTO ledger.balances (book, commodity, account, period, pot, code, amount)"
        " VALUES ('alpha', 'gpu_ms_weighted', 'org/nobody', '2031-01', 'budget', 'grant', 0)"
    )
    with full.trial(made_up) as connection:
        (told,) = rebuild.check(Reader(connection), Calendar()).differences
    assert told.startswith("balance not in the journal: ")
