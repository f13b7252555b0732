"""A ledger, a clock that stands, and commands that print what a test wants."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.collecting import Bin

from gpuledger.database.engine import make_engine
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock, instant
from gpuledger.streams.files import FileBroker

NOW_S = 1_796_000_000


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(instant(NOW_S))


@pytest.fixture
def intake(engine: sa.Engine, clock: FixedClock) -> Intake:
    return Intake(engine, clock, Calendar())


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bin:
    return Bin(tmp_path / "bin", monkeypatch)


@pytest.fixture
def broker(tmp_path: Path) -> FileBroker:
    return FileBroker(tmp_path / "streams")
