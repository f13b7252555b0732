"""A history in one piece becomes one in months and loses no byte; partitions are made ahead and lock nobody out."""

import datetime as dt
import threading

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from psycopg.errors import RaiseException
from tests.integration.ledger.books import HOUR, Ledger, run_of, submitted, told

from gpuledger.database import migrate
from gpuledger.database.engine import reading
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Corrupt
from gpuledger.ledger.audit import verify
from gpuledger.ledger.rebuild import check

MONTHS = [dt.datetime(2026, month, 28, tzinfo=dt.UTC) for month in (8, 9, 11)]

JOURNAL = (
    "SELECT book, seq, recorded_at, effective_at, type, source, event_id, digest, workload, run, body::text,"
    " extra_ref, row_hash FROM ledger.journal ORDER BY book, seq"
)
POSTINGS = (
    "SELECT book, seq, n, code, commodity, amount, debit_pot, debit_account, debit_period, credit_pot, credit_account,"
    " credit_period, workload, run, effective_on, reverses_seq, reason FROM ledger.postings ORDER BY book, seq, n"
)
PARTS = "SELECT c.relname FROM pg_class AS c WHERE c.relispartition AND c.relkind = 'r' ORDER BY 1"


@pytest.fixture
def ledger(database_url: str) -> Ledger:
    """Three months of a book, the last of them two months after the one before."""
    ledger = Ledger(database_url)
    for number, month in enumerate(MONTHS):
        ledger.clock = FixedClock(month)
        ledger.append(*run_of(0, HOUR, f"w{number}"), told(5, submitted(f"v{number}"), comment='odd " text'))
    return ledger


def parts(ledger: Ledger) -> list[str]:
    return [name for (name,) in ledger.rows(PARTS)]


def names(*months: str) -> set[str]:
    return {f"{table}_{month}" for table in ("journal", "postings") for month in months}


def holds(ledger: Ledger) -> bool:
    with reading(ledger.engine) as reader:
        return verify(reader).ok and check(reader, ledger.calendar).ok


def test_a_history_in_one_piece_is_converted_without_losing_a_byte(ledger: Ledger) -> None:
    command.downgrade(migrate._config(ledger.url), "0003")
    before = ledger.rows(JOURNAL), ledger.rows(POSTINGS), ledger.digest()
    assert (len(before[0]), len(before[1]), parts(ledger)) == (12, 6, [])
    migrate.upgrade(ledger.url)
    assert (ledger.rows(JOURNAL), ledger.rows(POSTINGS), ledger.digest()) == before
    assert names("2026_08", "2026_09", "2026_10", "2026_11", "2026_12") <= set(parts(ledger))
    assert ledger.value("SELECT count(*) FROM ledger.journal_2026_09") == 4
    assert ledger.value("SELECT count(*) FROM ledger.postings_2026_09") == 2
    assert holds(ledger)
    migrate.check(ledger.url)
    assert (
        ledger.append(told(5, submitted("v0"), comment='odd " text')).repeated == 1
    )  # identities came along


def test_a_history_that_lost_a_row_is_not_converted(ledger: Ledger) -> None:
    command.downgrade(migrate._config(ledger.url), "0003")
    ledger.change(
        "ALTER TABLE ledger.journal DISABLE TRIGGER ALL", "DELETE FROM ledger.journal WHERE seq = 3"
    )
    with pytest.raises(RaiseException, match="postings without a journal row"):
        migrate.upgrade(ledger.url)
    assert ledger.value("SELECT count(*) FROM ledger.journal") == 11


def test_the_partition_of_a_month_and_of_the_next_are_there_before_they_are_needed(ledger: Ledger) -> None:
    made = set(parts(ledger))
    assert names("2026_08", "2026_09", "2026_10", "2026_11", "2026_12") <= made
    ledger.clock = FixedClock(dt.datetime(2027, 3, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC))
    ledger.append(*run_of(0, HOUR, "edge"))  # three rows, the second and third of them in April
    assert set(parts(ledger)) - made == names("2027_03", "2027_04", "2027_05")
    assert [ledger.value(f"SELECT count(*) FROM ledger.journal_2027_0{month}") for month in (3, 4)] == [1, 2]
    assert holds(ledger)


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns"])
def test_months_are_utc_months_in_whatever_zone_a_session_lives(ledger: Ledger, zone: str) -> None:
    with ledger.trial(
        f"SET LOCAL timezone = '{zone}'", "SELECT ledger.make_partitions('2030-01-31 23:30Z')"
    ) as connection:
        made = {name for (name,) in connection.exec_driver_sql(PARTS)}
        connection.exec_driver_sql("SET LOCAL timezone = 'UTC'")
        bounds = connection.exec_driver_sql(
            "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'journal_2030_01'"
        ).scalar()
    assert made - set(parts(ledger)) == names("2030_01", "2030_02")
    assert bounds == "FOR VALUES FROM ('2030-01-01 00:00:00+00') TO ('2030-02-01 00:00:00+00')"


def test_a_month_is_asked_for_once_and_not_with_every_batch(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def execute(self: "psycopg.Connection[object]", query: str, *args: object, **keys: object) -> object:
        if "make_partitions" in str(query):
            asked.append(str(query))
        return original(self, query, *args, **keys)  # type: ignore[arg-type]

    original = psycopg.Connection.execute
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    ledger.append(*run_of(0, HOUR, "again"))
    assert asked == []
    ledger.clock = FixedClock(dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
    ledger.append(*run_of(0, HOUR, "next"))
    ledger.append(*run_of(0, HOUR, "next again"))
    assert len(asked) == 1


def test_making_a_partition_keeps_neither_readers_nor_writers_from_the_others(ledger: Ledger) -> None:
    with ledger.trial("SELECT ledger.make_partitions('2030-01-01Z')") as connection:
        held = connection.exec_driver_sql(
            "SELECT DISTINCT mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"
            " AND relation IN (SELECT oid FROM pg_class WHERE relname ~ '^(pk_|ix_)?(journal|postings)'"
            " AND relname !~ '2030')"
        )
        assert {mode for (mode,) in held} <= {
            "AccessShareLock",
            "RowExclusiveLock",
            "ShareUpdateExclusiveLock",
        }
        ledger.append(*run_of(0, HOUR, "meanwhile"))  # would wait until the trial ends
        assert ledger.value("SELECT count(*) FROM ledger.postings") == 8


def test_books_that_enter_a_month_at_once_make_its_partitions_once(ledger: Ledger) -> None:
    ledger.clock = FixedClock(dt.datetime(2029, 5, 1, tzinfo=dt.UTC))
    failed: list[BaseException] = []
    gate = threading.Barrier(4)

    def write(book: str) -> None:
        try:
            gate.wait()
            ledger.append(told(0, submitted(cluster=book)))
        except BaseException as error:  # noqa: BLE001 - whatever it was, the test tells
            failed.append(error)

    threads = [threading.Thread(target=write, args=(f"book{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    assert ledger.value("SELECT count(*) FROM ledger.journal_2029_05") == 4
    assert holds(ledger)


def test_a_book_whose_present_month_was_taken_away_is_not_continued(ledger: Ledger) -> None:
    ledger.change("DROP TABLE ledger.journal_2026_11")
    with pytest.raises(Corrupt, match="no partition of relation") as refused:
        ledger.append(*run_of(0, HOUR, "next"))
    assert "audit verify" in refused.value.hint


def test_models_ignore_partitions_and_see_strangers(ledger: Ledger) -> None:
    migrate.check(ledger.url)
    with sa.create_engine(ledger.url, poolclass=sa.NullPool).begin() as connection:
        connection.exec_driver_sql("ALTER TABLE ledger.journal DETACH PARTITION ledger.journal_2026_12")
    with pytest.raises(Exception, match="journal_2026_12"):
        migrate.check(ledger.url)


@pytest.mark.parametrize("at", ["2027-06-01 BC", "infinity", "-infinity", "9999-01-01", None])
def test_a_month_that_nothing_is_recorded_in_is_refused(database_url: str, at: str | None) -> None:
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute("SET ROLE gpuledger_writer")
        with pytest.raises(psycopg.errors.RaiseException, match="nothing is recorded at"):
            connection.execute("SELECT ledger.make_partitions(%s::timestamptz)", (at,))
