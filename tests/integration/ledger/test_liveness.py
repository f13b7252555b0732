"""How alive a book is."""

import datetime as dt

import sqlalchemy as sa
from tests.integration.ledger.books import Ledger, ended, registered, started, submitted, told

from gpuledger.database.engine import reading
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import liveness

DAY = dt.timedelta(days=1)


def test_runs_hosts_and_what_gpus_report(database_url: str) -> None:
    ledger = Ledger(database_url)
    now = ledger.clock.now()
    now_s = seconds(now)
    ledger.append(
        told(now_s - 10, registered("h1", 8)),
        told(now_s - 9, submitted("open")),
        told(now_s - 9, started("open")),
    )
    ledger.append(
        told(now_s - 8, submitted("over", cluster="beta")),
        told(now_s - 8, started("over", cluster="beta")),
        told(now_s - 7, ended("over", cluster="beta")),
    )
    with ledger.engine.begin() as connection:
        for book, at, workload, run in (
            ("alpha", now, "", "job/2"),
            ("alpha", now, "", "job/1"),
            ("alpha", now, "", ""),
            ("alpha", now, "open", "r1"),
            ("beta", now - 2 * DAY, "", "job/9"),
        ):
            connection.execute(
                sa.text(
                    "INSERT INTO telemetry.buckets VALUES (:book, :at, 'g', :workload, :run, 'gpu_util', 1, 1)"
                ),
                {"book": book, "at": at, "workload": workload, "run": run},
            )
        connection.execute(sa.text("INSERT INTO telemetry.handles VALUES ('alpha', 'job/2', 'w2', 'r2')"))
    with reading(ledger.engine) as reader:
        assert liveness.open_runs(reader) == {"alpha": 1}
        assert liveness.with_inventory(reader) == {"alpha"}
        assert liveness.with_work(reader) == {"alpha", "beta"}
        assert liveness.measured_since(reader, now - DAY) == {"alpha"}
        assert liveness.unknown_runs(reader, now - DAY) == {"alpha": ["job/1"]}
        assert liveness.unknown_runs(reader, now - 3 * DAY) == {"alpha": ["job/1"], "beta": ["job/9"]}
