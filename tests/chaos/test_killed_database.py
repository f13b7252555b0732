"""PostgreSQL is killed in the middle of an import; the import is run again and all is as in peace."""

import os
import signal
from pathlib import Path

from tests.chaos.workers import ended, wait_for
from tests.commands.fixtures import Ledger, running_home
from tests.commands.running import finish, start
from tests.commands.traces import DATA


def test_an_import_whose_database_is_killed(ledger: Ledger, own_home: Ledger) -> None:
    ledger.done("import", "openb", DATA)
    own_home.home.mkdir()
    with running_home(own_home.home) as attacked:
        assert attacked.fresh("db", "upgrade").status == 0
        with ended(start("import", "openb", DATA, "--json", settings=attacked.settings)) as process:
            assert wait_for(
                lambda: attacked.rows("SELECT 1 FROM ledger.books WHERE book = 'openb'") != [], process
            )
            os.kill(_postmaster(attacked.home), signal.SIGKILL)
            ran = finish(process, within_s=120)
    assert ran.status == 75
    assert ran.problem["exit"] == 75
    assert "Traceback" not in ran.err
    assert ran.out == ""

    again = own_home.fresh("import", "openb", DATA, "--json")

    assert again.status == 0, again.err
    assert again.json["records"] == 9365
    assert again.json["repeated"] > 0
    with running_home(own_home.home) as healed:
        assert healed.checked_digest() == ledger.checked_digest()


def _postmaster(home: Path) -> int:
    return int((home / "postgres" / "postmaster.pid").read_text().splitlines()[0])
