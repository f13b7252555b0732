"""What the benches share: an empty ledger in a database of its own, and a collector as each bench tells it."""

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.brokers import fixtures as brokers
from tests.conftest import wait_for_the_disk
from tests.integration.ledger.books import Ledger

from gpuledger.ingest.collector import relax_collector

if TYPE_CHECKING:
    from gpuledger.database.embedded import EmbeddedPostgres

apache_kafka = brokers.apache_kafka


@pytest.fixture(scope="package", autouse=True)
def _as_in_production(postgres: "EmbeddedPostgres") -> Iterator[None]:
    wait_for_the_disk(postgres, wait=True)
    yield
    wait_for_the_disk(postgres, wait=False)


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """What one bench tells the collector, and leaves it to look through, is none of the next one's business."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.collect()


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """An empty ledger; days are UTC days."""
    relax_collector()
    ledger = Ledger(database_url)
    yield ledger
    ledger.engine.dispose()
