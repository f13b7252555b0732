"""Sums of days are made from all that was posted, also by whoever was writing when the migration came."""

import threading

import pytest
from alembic import command
from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, run_of

from gpuledger.database import migrate
from gpuledger.database.engine import reading, writing
from gpuledger.ledger import days
from gpuledger.ledger.append import append
from gpuledger.ledger.rebuild import check


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
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).differences == ()
    ledger.engine.dispose()
