"""How far a cluster has been rolled up, and what of its book that has seen."""

import datetime as dt
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import make_engine, reading
from gpuledger.warehouse import spans
from gpuledger.warehouse.tables import layer_metrics_hour, watermark

MONDAY = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    found = make_engine(database_url)
    yield found
    found.dispose()


def test_a_span_is_what_was_rolled_up_and_seen_is_how_far_its_book_was_read(engine: sa.Engine) -> None:
    with reading(engine) as reader:
        assert (spans.spans(reader), spans.seen(reader)) == ({}, {})
    numbers = {
        column.key: 0
        for column in layer_metrics_hour.c
        if not column.nullable and isinstance(column.type, sa.BigInteger)
    }
    with engine.begin() as connection:
        for hour in (0, 5):
            values = {"cluster": "alpha", "hour_at": MONDAY + hour * HOUR, **numbers}
            connection.execute(layer_metrics_hour.insert().values(values))
        connection.execute(watermark.insert().values(cluster="alpha", ledger_seq=7, as_of_at=MONDAY))
    with reading(engine) as reader:
        assert spans.spans(reader) == {"alpha": spans.Span(MONDAY, MONDAY + 6 * HOUR)}
        assert spans.seen(reader) == {"alpha": (7, MONDAY)}
