"""What waits in a stream stands in the ledger, where metrics read it."""

import sqlalchemy as sa
from tests.integration.ingest.test_worker import job, put, run

from gpuledger.database.engine import reading
from gpuledger.ingest.intake import Intake
from gpuledger.ledger import queries
from gpuledger.streams.files import FileBroker
from gpuledger.streams.topics import SCHEDULER_EVENTS


def test_what_waits_is_kept_where_metrics_read_it(
    engine: sa.Engine, intake: Intake, broker: FileBroker
) -> None:
    put(broker, [*job("a"), *job("b")])
    run(intake, broker)
    with reading(engine) as reader:
        (status,) = queries.streams(reader)
    found = (status.consumer, status.stream, status.position, status.waiting)
    assert found == ("ledger", SCHEDULER_EVENTS, 6, 0)
    assert status.seen_at is not None
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE ledger.stream_offsets SET position = 2")
    with reading(engine) as reader:
        assert queries.streams(reader)[0].waiting == 4
