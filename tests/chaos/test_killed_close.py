"""A close is killed at each of its steps, and at random, and run again: its file is the one of a close in peace."""

import hashlib
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from tests.chaos.workers import ended, wait_for
from tests.commands.fixtures import Ledger
from tests.commands.running import start

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

pytestmark = pytest.mark.timeout(1800)

PERIOD = "2026-02"
HOUR_S = 3600
CLUSTER = "alpha"
STEPS = {
    "short": ("ledger.postings", "ledger.lots", "warehouse.close"),
    "full": (
        "ledger.books", "ledger.journal", "ledger.identities", "ledger.postings", "ledger.balances",
        "ledger.lots", "ledger.periods", "warehouse.close", "warehouse.statement",
    ),
}  # fmt: skip
"""Tables that a close writes: it is killed while it waits for one of them, with all that its step did before undone."""
KILLS = {"short": 3, "full": 20}

FILE = """
clusters: {alpha: {gpus: 16, model: h100}}
accounts:
  org/vision:
    share: 1
    grants:
      - {cluster: alpha, period: 2026-02, gpu_hours: 9000, rollover: max 30}
      - {cluster: alpha, period: 2026-03, gpu_hours: 9000, rollover: max 30}
"""
SUMS = """
    SELECT commodity, account, period, pot, code, amount FROM ledger.balances WHERE amount <> 0 ORDER BY 1, 2, 3, 4, 5
"""
NETS = """
    SELECT code, commodity, debit_pot, credit_pot, debit_account, credit_account, debit_period, credit_period,
           workload, run, effective_on, sum(amount)::bigint
    FROM ledger.postings GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
"""
ROWS = "SELECT book, type, count(*) FROM ledger.journal GROUP BY 1, 2 ORDER BY 1, 2"
CLOSE = ("close", "run", PERIOD, "--cluster", CLUSTER, "--yes", "--no-gate")


def events() -> list[Event]:
    """A run that ended within the period, and one that goes on beyond its end."""
    at_s = Calendar().period_bounds_s(PERIOD)[0] + 9 * 86_400
    told = []
    for name in ("ended", "open"):
        named = {"cluster": CLUSTER, "workload": name}
        told += [
            Submitted(**named, account="org/vision", user="ada", gpus_milli=8000, time_limit_s=40 * 86_400),
            Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["h1"]),
        ]
    facts = [(at_s, fact) for fact in told]
    facts.append((at_s + 5 * HOUR_S, Ended(cluster=CLUSTER, workload="ended", run="r1", reason="completed")))
    return [make(id=f"{n}", source="test", at_s=at_s, data=fact)[0] for n, (at_s, fact) in enumerate(facts)]


@pytest.fixture
def spent(ledger: Ledger, tmp_path: Path) -> Ledger:
    """A period that is over."""
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-02-01", "--yes")
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take(events())
    engine.dispose()
    return ledger


class Copies:
    """Copies of one database, each with a data folder of its own: the same close begins in each of them."""

    def __init__(self, postgres: "EmbeddedPostgres", of: Ledger, folder: Path) -> None:
        self._postgres, self._of, self._folder = postgres, of, folder
        self._name = sa.make_url(of.url).database
        self._count = 0

    @contextmanager
    def copy(self) -> Iterator[Ledger]:
        self._count += 1
        name = f"{self._name}_copy_{self._count}"
        self._administer(f"CREATE DATABASE {name} TEMPLATE {self._name}")
        url = self._postgres.url(name)
        settings = {**self._of.settings, "GPULEDGER_DATABASE_URL": url}
        yield Ledger({**settings, "GPULEDGER_HOME": str(self._folder / name)}, url)
        self._administer(f"DROP DATABASE {name} WITH (FORCE)")

    def _administer(self, statement: str) -> None:
        engine = sa.create_engine(
            self._postgres.url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)


@contextmanager
def held(ledger: Ledger, table: str) -> Iterator[None]:
    """Keep everybody from writing a table; reading it goes on."""
    engine = make_engine(ledger.url)
    with engine.connect() as connection, connection.begin() as transaction:
        connection.exec_driver_sql(f"LOCK TABLE {table} IN SHARE MODE")
        yield
        transaction.rollback()
    engine.dispose()


def waits_for(ledger: Ledger, table: str) -> bool:
    return bool(
        ledger.rows(
            "SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass(:table)"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            table=table,
        )
    )


def stands(ledger: Ledger) -> list[list[tuple[object, ...]]]:
    return [ledger.rows(sql) for sql in (SUMS, NETS, ROWS)]


def files(ledger: Ledger) -> dict[str, str]:
    """Return the digest of each file that the close left; half-written ones begin with a dot, and are none."""
    folder = ledger.home / "closes" / CLUSTER / PERIOD / "v1"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("[!.]*"))}


def frozen(ledger: Ledger) -> Ledger:
    """Begin the close and kill it once its first step is done: from here on the file is given."""
    with (
        held(ledger, "ledger.lots"),
        ended(start(*CLOSE, settings=ledger.settings)) as process,
    ):
        assert wait_for(lambda: waits_for(ledger, "ledger.lots"), process), "nothing of a close writes lots"
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert ledger.rows("SELECT state FROM ledger.periods WHERE period = :p", p=PERIOD) == [("closing",)]
    return ledger


def test_a_close_that_is_killed_at_any_step_and_run_again_is_a_close_in_peace(
    spent: Ledger, postgres: "EmbeddedPostgres", tmp_path: Path, test_form: str
) -> None:
    copies = Copies(postgres, spent, tmp_path)
    with copies.copy() as peace:
        assert peace.done(*CLOSE)["repeated"] is False
        in_peace = stands(peace)
    for table in STEPS[test_form]:
        with held(spent, table), ended(start(*CLOSE, settings=spent.settings)) as process:
            assert wait_for(lambda: waits_for(spent, table), process), f"nothing of a close writes {table}"  # noqa: B023
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()

    done = spent.done(*CLOSE)
    assert done["version"] == 1
    assert spent.done(*CLOSE)["repeated"] is True
    assert stands(spent) == in_peace
    assert files(spent)["close.json"] == done["digest"]
    assert spent.checked_digest()


def test_a_close_that_is_killed_at_random_and_run_again_leaves_the_same_file(
    spent: Ledger, postgres: "EmbeddedPostgres", tmp_path: Path, test_form: str
) -> None:
    """What a close is made of is fixed by its first step: from there on each copy comes to the same bytes."""
    copies = Copies(postgres, frozen(spent), tmp_path)
    chance = random.Random(KILLS[test_form])
    with copies.copy() as peace:
        began = time.monotonic()
        done: dict[str, Any] = peace.fresh(*CLOSE, "--json").json
        takes_s = time.monotonic() - began
        in_peace, left = stands(peace), files(peace)
    for _ in range(KILLS[test_form]):
        with copies.copy() as attacked:
            with ended(start(*CLOSE, settings=attacked.settings)) as process:
                time.sleep(chance.uniform(0, takes_s))
                os.kill(process.pid, signal.SIGKILL)
                process.communicate()
            again = attacked.done(*CLOSE)
            assert (again["digest"], again["version"]) == (done["digest"], 1)
            assert files(attacked) == left
            assert stands(attacked) == in_peace


def test_two_commands_at_once_are_one_close(spent: Ledger) -> None:
    both = [start(*CLOSE, "--json", settings=spent.settings) for _ in range(2)]
    with ended(both[0]), ended(both[1]):
        told = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert spent.rows(
        "SELECT count(*) FROM ledger.journal WHERE type LIKE 'period.%' AND type <> 'period.opened'"
    ) == [(3,)]
    assert len({out.partition('"digest": ')[2][:66] for out, _ in told}) == 1
