"""A close of a period is killed at each of its steps and run again: what stands is what a close in peace leaves."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.chaos.workers import ended, wait_for
from tests.commands.fixtures import Ledger
from tests.commands.running import start

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

pytestmark = pytest.mark.timeout(1200)

PERIOD = "2026-02"
HOUR_S = 3600
CLUSTERS = ("attacked", "peace")
STEPS = {
    "short": ("postings", "periods"),
    "full": ("books", "journal", "identities", "postings", "balances", "segments", "lots", "periods"),
}
"""Tables that a close writes: it is killed while it waits for one of them, with all that it did before undone."""

FILE = """
clusters: {{{clusters}}}
accounts:
  org/vision: {{share: 1, grants: [{grants}]}}
"""
SUMS = """
    SELECT commodity, account, period, pot, code, amount FROM ledger.balances WHERE book = :book AND amount <> 0
    ORDER BY 1, 2, 3, 4, 5
"""
NETS = """
    SELECT code, commodity, debit_pot, credit_pot, debit_account, credit_account, debit_period, credit_period,
           workload, run, effective_on, sum(amount)::bigint
    FROM ledger.postings WHERE book = :book GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
"""
ROWS = "SELECT type, count(*) FROM ledger.journal WHERE book = :book GROUP BY 1 ORDER BY 1"


def events(cluster: str) -> list[Event]:
    """A run that ended within the period, and one that goes on beyond its end."""
    at_s = Calendar().period_bounds_s(PERIOD)[0] + 9 * 86_400
    told = []
    for name in ("ended", "open"):
        named = {"cluster": cluster, "workload": name}
        told += [
            Submitted(**named, account="org/vision", user="ada", gpus_milli=8000, time_limit_s=40 * 86_400),
            Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["h1"]),
        ]
    facts = [(at_s, fact) for fact in told]
    facts.append((at_s + 5 * HOUR_S, Ended(cluster=cluster, workload="ended", run="r1", reason="completed")))
    return [make(id=f"{n}", source="test", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(facts)]


@pytest.fixture
def spent(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Two clusters of which the same is known, but for their names."""
    path = tmp_path / "budget.yaml"
    grants = (
        f"{{cluster: {name}, period: {period}, gpu_hours: 9000, rollover: max 30}}"
        for name in CLUSTERS
        for period in (PERIOD, "2026-03")
    )
    clusters = ", ".join(f"{name}: {{gpus: 16, model: h100}}" for name in CLUSTERS)
    path.write_text(FILE.format(clusters=clusters, grants=", ".join(grants)))
    ledger.done("budget", "apply", path, "--from", "2026-02-01", "--yes")
    engine = make_engine(ledger.url)
    for name in CLUSTERS:
        Intake(engine, SystemClock(), Calendar()).take(events(name))
    engine.dispose()
    return ledger


@contextmanager
def held(ledger: Ledger, table: str) -> Iterator[None]:
    """Keep everybody from writing a table; reading it goes on."""
    engine = make_engine(ledger.url)
    with engine.connect() as connection, connection.begin() as transaction:
        connection.exec_driver_sql(f"LOCK TABLE ledger.{table} IN SHARE MODE")
        yield
        transaction.rollback()
    engine.dispose()


def waits_for(ledger: Ledger, table: str) -> bool:
    return bool(
        ledger.rows(
            "SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass(:table)"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            table=f"ledger.{table}",
        )
    )


def stands(ledger: Ledger, cluster: str) -> list[list[tuple[object, ...]]]:
    return [ledger.rows(sql, book=cluster) for sql in (SUMS, NETS, ROWS)]


def test_a_close_that_is_killed_at_any_step_and_run_again_is_a_close_in_peace(
    spent: Ledger, test_form: str
) -> None:
    close = ("close", "run", PERIOD, "--cluster", "attacked", "--yes")
    before = stands(spent, "attacked")
    for table in STEPS[test_form]:
        with (
            held(spent, table),
            ended(start(*close, settings=spent.settings)) as process,
        ):
            assert wait_for(lambda: waits_for(spent, table), process), f"nothing of a close writes {table}"  # noqa: B023
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        assert stands(spent, "attacked") == before, "a step of a close is nothing without the others"

    assert spent.done(*close)["repeated"] is False
    assert spent.done(*close)["repeated"] is True
    assert spent.done("close", "run", PERIOD, "--cluster", "peace", "--yes")["repeated"] is False

    assert stands(spent, "attacked") == stands(spent, "peace")
    assert ("period.closed", 1) in stands(spent, "attacked")[2]
    assert spent.checked_digest()
