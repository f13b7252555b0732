"""Balances and sums by day that are made in one walk are those that batches moved on posting by posting."""

import pytest
from tests.integration.ledger.books import HOUR, Ledger, run_of
from tests.integration.ledger.test_commands import funded
from tests.integration.ledger.test_lapses import lapsing
from tests.integration.ledger.test_overtaken import adjust, ends

from gpuledger.database.engine import writing
from gpuledger.ledger import adding_up

__all__ = ["funded", "lapsing"]

STORED = {
    "balances": "SELECT book, commodity, account, period, pot, code, amount FROM ledger.balances WHERE amount <> 0",
    "day_sums": "SELECT book, account, day::text, used, charged, credited, unallocated FROM ledger.day_sums"
    " WHERE (used, charged, credited, unallocated) <> (0, 0, 0, 0)",
}


def stored(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(ledger.rows(query)) for table, query in STORED.items()}


def made_anew(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    with writing(ledger.engine) as writer:
        for table in STORED:
            writer.exec_driver_sql(f"DELETE FROM ledger.{table}")
        adding_up.rebuild(writer)
    return stored(ledger)


@pytest.mark.parametrize("kind", ["funded", "lapsing"])
def test_they_are_what_batches_made(kind: str, request: pytest.FixtureRequest) -> None:
    """Grants, charges on both sides of midnight, use for free, corrections, what is posted back, what lapses."""
    ledger: Ledger = request.getfixturevalue(kind)
    ledger.append(*run_of(0, 30 * HOUR, "over-days"), *run_of(0, HOUR, "free", klass="unallocated"))
    if kind == "funded":
        adjust(ledger, "charge", -5)
        ends(ledger, HOUR // 2)
    before = stored(ledger)
    assert all(before.values())
    assert made_anew(ledger) == before


def test_of_nothing_there_is_nothing(ledger: Ledger) -> None:
    assert made_anew(ledger) == {"balances": [], "day_sums": []}
