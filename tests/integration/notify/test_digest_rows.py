"""What a week's digest is made of, as a roll-up left it; and a month of them, each once."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from tests.integration.notify.spending import Inbox, mail, notifier, roll_up, webhook

from gpuledger.database.engine import make_engine, reading
from gpuledger.database.metadata import Instant
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import FixedClock
from gpuledger.notify import running
from gpuledger.notify.digest_rows import read_digests
from gpuledger.notify.notices import Kind
from gpuledger.notify.payloads import WeeklyDigest
from gpuledger.warehouse.tables import layer_metrics_hour, owed_hour, queue_wait_day, waste_day

MONDAY = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 12, 7, 9, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    found = make_engine(database_url)
    yield found
    found.dispose()


def put(engine: sa.Engine, table: sa.Table, **values: Any) -> None:  # noqa: ANN401 - whatever a column holds
    """Insert a row; every number that is not said is 0, every list empty."""
    rest = {
        column.key: [] if isinstance(column.type, sa.ARRAY) else 0
        for column in table.c
        if not column.nullable and not isinstance(column.type, sa.Text | Instant | sa.Date)
    }
    with engine.begin() as connection:
        connection.execute(table.insert().values({"cluster": "alpha", **rest, **values}))


def a_week(engine: sa.Engine) -> None:
    """A week that is rolled up to its end: two projects of one program, and a program that did nothing."""
    put(engine, layer_metrics_hour, hour_at=MONDAY + 167 * HOUR)
    roll_up(engine, "org/a/x", 40, budget=100, transferred=20, credited=5)
    roll_up(engine, "org/a/y", 1, budget=10)
    roll_up(engine, "org/b", 0, budget=7)
    for account, hour, owed, delivered in (
        ("org/a/x", -1, 1000, 1000),
        ("org/a/x", 0, 8, 6),
        ("org/a/x", 167, 8, 9),
        ("org/a/x", 168, 1000, 1000),
        ("org/a/y", 5, None, 2),
    ):
        amounts = {"owed_gpu_ms": owed, "entitlement_gpu_ms": owed, "delivered_gpu_ms": delivered}
        put(engine, owed_hour, hour_at=MONDAY + hour * HOUR, account=account, **amounts)
    for day, idle, squatted in ((-1, 500, 500), (0, 3, 1), (6, 4, 2), (7, 500, 500)):
        at = MONDAY.date() + dt.timedelta(days=day)
        put(
            engine, waste_day, day=at, account="org/a/x", user_token="u", idle_gpu_ms=idle, squatted_gpu_ms=squatted
        )  # fmt: skip
    put(
        engine, queue_wait_day, day=MONDAY.date(), account="org/a/x", klass="allocated", size="1", turn="first",
        request_count=3, started_count=3, started_after_s=[60, 60, 600], as_of_at=NOW,
    )  # fmt: skip


def digests(engine: sa.Engine, now: dt.datetime, *nodes: str | None) -> list[WeeklyDigest]:
    with reading(engine) as reader:
        return read_digests(reader, Calendar(), now, nodes)


def test_a_node_is_told_of_its_week_and_of_those_right_below_it(engine: sa.Engine) -> None:
    a_week(engine)
    (found,) = digests(engine, NOW, "org/a")
    assert (found.cluster, found.week, found.from_day, found.to_day, found.period) == (
        "alpha", "2026-W49", "2026-11-30", "2026-12-07", "2026-12",
    )  # fmt: skip
    shown = [
        (row.account, row.given_gpu_ms, row.spent_gpu_ms, row.owed_gpu_ms, row.delivered_gpu_ms, row.idle_gpu_ms,
         row.squatted_gpu_ms)
        for row in found.rows
    ]  # fmt: skip
    assert shown == [
        ("org/a", 130, 36, None, 17, 7, 3),
        ("org/a/x", 120, 35, 16, 15, 7, 3),
        ("org/a/y", 10, 1, None, 2, 0, 0),
    ]
    assert found.waits is not None
    assert (found.waits.request_count, found.waits.started_count, found.waits.p50_s) == (3, 3, 60)


def test_the_organisation_is_told_of_its_highest_accounts_and_who_has_no_part_of_nothing(
    engine: sa.Engine,
) -> None:
    a_week(engine)
    found = digests(engine, NOW, None, "org/b", "elsewhere")
    assert [(each.account, [row.account for row in each.rows]) for each in found] == [
        (None, ["org"]),
        ("org/b", ["org/b"]),
    ]
    assert found[1].waits is None


def test_a_week_that_is_not_rolled_up_to_its_end_is_not_told_of(engine: sa.Engine) -> None:
    a_week(engine)
    with engine.begin() as connection:
        connection.execute(layer_metrics_hour.update().values(hour_at=MONDAY + 166 * HOUR))
    assert digests(engine, NOW, None) == []


def test_a_month_brings_each_person_one_a_week(engine: sa.Engine, database_url: str) -> None:
    a_week(engine)
    with engine.begin() as connection:
        connection.execute(layer_metrics_hour.update().values(hour_at=MONDAY + 40 * 24 * HOUR))
    clock, inbox = FixedClock(NOW), Inbox()
    quiet = {"from": "00:00", "to": "08:00"}
    only = {"notices": [Kind.DIGEST_WEEKLY]}
    lead = mail("lead", account="org/a", quiet=quiet, **only)
    sender = notifier(
        database_url, clock, inbox, lead, webhook("all", **only), mail("x", account="org/a/x", **only)
    )
    weeks: Counter[str] = Counter()
    for hour in range(0, 28 * 24, 6):
        clock.at = NOW + hour * HOUR
        told = running.run(sender, send=True)
        weeks.update(target for _, target in told.sent)
        assert lead.name not in [target for _, target in told.sent] or clock.at.hour >= 8
    assert weeks == {"webhook/all": 4, lead.name: 4, "mail/x/1": 4}
    assert len(inbox.got) == len(set(inbox.got)) == 12
