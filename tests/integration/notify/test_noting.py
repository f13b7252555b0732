"""What somebody came upon is written down, and a fault of that is told and stops nobody."""

import datetime as dt
from pathlib import Path

import sqlalchemy as sa
from tests.integration.notify.receiving import write_recipients

from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import FixedClock
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.noting import note_found
from gpuledger.notify.payloads import Trial
from gpuledger.settings import Settings

CLOCK = FixedClock(dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
NOTICE = Notice(Kind.TEST, ("x",), Trial(by="ada"))


def count(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return int(connection.scalar(sa.text("SELECT count(*) FROM notify.notices")) or 0)


def test_it_is_written_down_once_where_anybody_is_told(database_url: str, tmp_path: Path) -> None:
    engine = make_engine(database_url)
    assert note_found(Settings(), engine, NOTICE, CLOCK) is None
    assert count(engine) == 0
    settings = Settings(notifications=write_recipients(tmp_path, "https://hooks.example.org/"))
    assert note_found(settings, engine, NOTICE, CLOCK) is None
    assert note_found(settings, engine, NOTICE, CLOCK) is None
    assert count(engine) == 1
    engine.dispose()


def test_what_cannot_be_written_down_is_told(tmp_path: Path) -> None:
    engine = make_engine("postgresql+psycopg://nobody@127.0.0.1:9/none")
    gone = Settings(notifications=tmp_path / "gone.yaml")
    assert "nobody is told of test: " in str(note_found(gone, engine, NOTICE, CLOCK))
    there = Settings(notifications=write_recipients(tmp_path, "https://hooks.example.org/"))
    assert "nobody is told of test: " in str(note_found(there, engine, NOTICE, CLOCK))
