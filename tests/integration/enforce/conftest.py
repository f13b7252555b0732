"""Ledgers for enforcers."""

from collections.abc import Iterator

import pytest
from tests.commands import fixtures
from tests.integration.enforce.worlds import World

from gpuledger.database.engine import make_engine

ledger = fixtures.ledger


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Two hosts of eight GPUs, nobody on them."""
    engine = make_engine(database_url)
    yield World(engine)
    engine.dispose()
