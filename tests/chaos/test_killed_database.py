"""PostgreSQL is killed in the middle of imports; they are run again and all is as in peace.

The server dies whole, or one of its processes does, upon which it throws all connections out and recovers.
"""

import os
import random
import signal
import time

import pytest
from sqlalchemy.exc import OperationalError
from tests.chaos.workers import ended, wait_for
from tests.commands.fixtures import Ledger, running_home
from tests.commands.running import finish, start
from tests.commands.traces import DATA

pytestmark = pytest.mark.timeout(2400)

KILLS = {"short": 2, "full": 20}
SEED = 20_200_203


def test_imports_whose_database_is_killed(ledger: Ledger, own_home: Ledger, test_form: str) -> None:
    ledger.done("import", "openb", DATA)
    chance = random.Random(SEED)
    # The last quarter is left to an import that finishes.
    points = sorted(chance.sample(range(_last_seq(ledger) * 3 // 4), KILLS[test_form]))
    own_home.home.mkdir()
    for number, point in enumerate(points):
        with running_home(own_home.home) as attacked:
            assert attacked.fresh("db", "upgrade").status == 0
            assert number == 0 or _last_seq(attacked) > points[number - 1], "what was committed is there"
            with ended(start("import", "openb", DATA, "--json", settings=attacked.settings)) as process:
                assert wait_for(lambda: _last_seq(attacked) > point and _backends(attacked) != [], process)  # noqa: B023
                time.sleep(chance.uniform(0, 0.3))
                os.kill(_backends(attacked)[0] if number % 2 else _postmaster(attacked), signal.SIGKILL)
                ran = finish(process, within_s=120)
            if number % 2:  # it comes back by itself, and is left alone until it has
                assert wait_for(lambda: _answers(attacked))
        assert ran.status == 75, ran.err
        assert ran.problem["exit"] == 75
        assert "Traceback" not in ran.err
        assert ran.out == ""

    again = own_home.fresh("import", "openb", DATA, "--json")

    assert again.status == 0, again.err
    assert again.json["records"] == 9365
    assert again.json["repeated"] > 0
    with running_home(own_home.home) as healed:
        assert healed.checked_digest() == ledger.checked_digest()
        assert _last_seq(healed) == _last_seq(ledger)


def _answers(ledger: Ledger) -> bool:
    try:
        return ledger.rows("SELECT 1") == [(1,)]
    except OperationalError:
        return False


def _last_seq(ledger: Ledger) -> int:
    rows = ledger.rows("SELECT last_seq FROM ledger.books WHERE book = 'openb'")
    return int(rows[0][0]) if rows else 0


def _postmaster(ledger: Ledger) -> int:
    return int((ledger.home / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def _backends(ledger: Ledger) -> list[int]:
    """Return the server's processes that work for the import, first those in the middle of a statement."""
    rows = ledger.rows(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        " AND datname = current_database() ORDER BY state = 'active' DESC"
    )
    return [int(pid) for (pid,) in rows]
