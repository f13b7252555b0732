"""The ledgers that commands and workers write to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.commands import fixtures

from gpuledger.database.engine import make_engine
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.streams.files import FileBroker

ledger = fixtures.ledger
own_home = fixtures.own_home
traces = fixtures.traces


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    """An empty, migrated ledger."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def intake(engine: sa.Engine) -> Intake:
    """Books into the empty ledger."""
    return Intake(engine, SystemClock(), Calendar())


@pytest.fixture
def broker(tmp_path: Path) -> FileBroker:
    """Streams in a folder."""
    return FileBroker(tmp_path / "streams")
