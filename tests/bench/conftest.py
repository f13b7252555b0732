"""What the benches share: an empty ledger in a database of its own, and a collector told of bulk work."""

from collections.abc import Iterator

import pytest
from tests.integration.ledger.books import Ledger

from gpuledger.ingest.collector import relax_collector


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """An empty ledger; days are UTC days."""
    relax_collector()
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()
