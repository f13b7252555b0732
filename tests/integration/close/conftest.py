"""A ledger with a period to close."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.close.closing import Books, fill
from tests.integration.ledger.books import Ledger


@pytest.fixture
def books(database_url: str, tmp_path: Path) -> Iterator[Books]:
    """November of ``alpha`` is over: 40 of 100 GPU-hours used, 30 may go on; a run that goes on beyond its end."""
    ledger = Ledger(database_url)
    fill(ledger)
    yield Books(ledger, tmp_path / "closes")
    ledger.engine.dispose()
