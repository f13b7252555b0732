"""Sums of days are those of all that was posted, whichever code posted it: that of before, that of now, in turns."""

import threading
from collections.abc import Iterator

import pytest
from alembic import command
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of

from gpuledger.database import migrate
from gpuledger.database.engine import reading, writing
from gpuledger.ledger import days
from gpuledger.ledger.append import append
from gpuledger.ledger.rebuild import check, rebuild


def test_a_batch_that_is_under_way_is_summed_up_too(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(database_url)
    command.downgrade(migrate._config(database_url), "0014")
    with monkeypatch.context() as before:  # the code before did not know of sums
        before.setattr(days, "add", lambda *_: None)
        ledger.append(*run_of(0, HOUR))
        upgrade = threading.Thread(target=migrate.upgrade, args=(database_url,))
        with writing(ledger.engine) as writer:
            append(writer, CLUSTER, run_of(0, HOUR, "w2"), clock=ledger.clock, calendar=ledger.calendar)
            upgrade.start()
            upgrade.join(1)
        upgrade.join()
    assert differences(ledger) == ()
    ledger.engine.dispose()


def differences(ledger: Ledger) -> tuple[str, ...]:
    with reading(ledger.engine) as reader:
        return check(reader, ledger.calendar).differences


def summed(ledger: Ledger) -> int:
    with ledger.engine.connect() as connection:
        return int(
            connection.exec_driver_sql(
                "SELECT coalesce(sum(charged + unallocated), 0) FROM ledger.day_sums"
            ).scalar_one()
        )


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()


def test_what_the_code_before_posts_is_summed_up_by_the_database(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.append(*run_of(0, HOUR, "by-new"))
    by_new = summed(ledger)
    with monkeypatch.context() as before:  # that code runs the same statements, but for the one of the sums
        before.setattr(days, "add", lambda *_: None)
        ledger.append(*run_of(0, HOUR, "by-old"), *run_of(0, 30 * HOUR, "over-days"))
        assert differences(ledger) == ()
    ledger.append(*run_of(0, HOUR, "by-new-again"))
    assert summed(ledger) == 33 * by_new > 0
    assert differences(ledger) == ()


def test_several_batches_of_a_transaction_are_each_looked_at(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, calls = days.add, []

    def at_times(*given: object) -> None:
        calls.append(given)
        if len(calls) % 2:
            add(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(days, "add", at_times)
    with writing(ledger.engine) as writer:
        for name in ("w1", "w2", "w3", "w4"):
            append(writer, CLUSTER, run_of(0, HOUR, name), clock=ledger.clock, calendar=ledger.calendar)
    assert len(calls) == 4
    assert differences(ledger) == ()


def test_plain_sql_of_a_posting_and_of_a_head_that_moves(ledger: Ledger) -> None:
    """What a program says that was written before there were sums."""
    ledger.append(*run_of(0, HOUR))
    by_one = summed(ledger)
    with writing(ledger.engine) as writer:
        rows = writer.exec_driver_sql(
            "INSERT INTO ledger.postings SELECT book, b.last_seq + 1, n, b.last_recorded_at + interval '1 second',"
            " code, commodity, amount, debit_pot, debit_account, debit_period, credit_pot, credit_account,"
            " credit_period, workload, run, effective_on, reverses_seq, reason"
            " FROM ledger.postings AS p JOIN ledger.books AS b USING (book)"
        )
        assert rows.rowcount > 0
        writer.exec_driver_sql(
            "UPDATE ledger.books SET last_seq = last_seq + 1, last_recorded_at = last_recorded_at + interval '1 second'"
        )
    assert summed(ledger) == 2 * by_one > 0


def test_a_rebuild_counts_nothing_twice(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    with writing(ledger.engine) as writer:
        rebuild(writer, ledger.calendar)
    ledger.append(*run_of(0, HOUR, "w2"))
    assert differences(ledger) == ()


def test_what_was_posted_without_sums_before_the_database_kept_them_is_made_up_for(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(database_url)
    command.downgrade(migrate._config(database_url), "0016")
    with monkeypatch.context() as before:
        before.setattr(days, "add", lambda *_: None)
        ledger.append(*run_of(0, HOUR))
    assert ledger.value("SELECT count(*) FROM ledger.postings") > 0
    assert ledger.value("SELECT count(*) FROM ledger.day_sums") == 0
    migrate.upgrade(database_url)
    assert differences(ledger) == ()
    ledger.engine.dispose()
