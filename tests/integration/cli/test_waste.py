"""``gpuledger waste``: what the warehouse says of charged time that was not used, as a document and as a table."""

import pytest
import sqlalchemy as sa
from tests.commands.fixtures import Ledger
from tests.e2e.seeding import HOUR, small_book


@pytest.fixture
def rolled_up(ledger: Ledger) -> Ledger:
    engine = sa.create_engine(ledger.url, poolclass=sa.NullPool)
    small_book(engine)
    return ledger


def test_a_document_has_amounts_and_what_was_asked(rolled_up: Ledger) -> None:
    told = rolled_up.done("waste", "--cluster", "alpha", "--account", "alpha/robotics")
    assert {key: told[key] for key in told if key != "rows"} == {
        "by": "account", "cluster": "alpha", "account": "alpha/robotics", "period": "2026-02",
        "periods": ["2026-02"],
    }  # fmt: skip
    (row,) = told["rows"]
    assert (row["squatted_gpu_ms"], row["squatted_of_budget"]) == (30 * HOUR, "0.0112")


def test_people_and_a_period_that_is_not_there(rolled_up: Ledger) -> None:
    assert next(row["key"] for row in rolled_up.done("waste", "--by", "user")["rows"]) == "u1"
    missing = rolled_up("waste", "--period", "2019-01")
    assert missing.status == 4
    assert "2026-02 to 2026-02" in missing.err


def test_a_table_has_the_period_above_it(rolled_up: Ledger) -> None:
    shown = rolled_up("waste", "--cluster", "alpha")
    assert shown.out.startswith("2026-02")
    assert "150.000" in shown.out


def test_a_key_that_there_is_not_is_refused(rolled_up: Ledger) -> None:
    refused = rolled_up("waste", "--by", "week")
    assert refused.status == 2
    assert "account, user" in refused.err
