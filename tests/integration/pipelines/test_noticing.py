"""What pipelines come upon is written down for people, and what cannot be written down stops nothing."""

import datetime as dt
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.integration.notify.receiving import Receiver
from tests.integration.pipelines.notifying import told
from tests.integration.pipelines.rows import DAY, DAY_S, HOUR_S, START_S, Database, Facts, Host, Segment
from tests.integration.pipelines.running import roll_up

from gpuledger import settings
from gpuledger.kernel.clock import FixedClock
from gpuledger.notify.payloads import CloseFailed
from gpuledger_pipelines.gate import Finding, Verdict
from gpuledger_pipelines.noticing import notice_check, notice_close
from gpuledger_pipelines.partitions import Span
from gpuledger_pipelines.resources import PROGRESS, Warehouse

NOON_S = START_S + 12 * HOUR_S
CLOCK = FixedClock(dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC))
SPAN = Span("c", START_S, START_S + 2 * DAY_S, START_S + 2 * DAY_S)
FAILED = Verdict(
    3, (Finding("residual is 0", 2, ({"hour": 1, "account": "c/a"}, {"hour": 2, "account": "x" * 999})),)
)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with told(tmp_path, monkeypatch) as found:
        yield found


def noticed(database: Database) -> list[dict[str, Any]]:
    rows = database.query("SELECT body FROM notify.notices ORDER BY noticed_at, id")
    return [msgspec.json.decode(body) for (body,) in rows]


def test_a_gate_that_does_not_hold_is_written_down_with_rows(database: Database, there: Receiver) -> None:
    for _ in range(2):
        notice_check(Warehouse(url=database.url), "gpu_hour", SPAN, FAILED, CLOCK)
    (found,) = noticed(database)
    assert found["type"] == "check.failed"
    assert found["data"] == {
        "cluster": "c", "table": "gpu_hour", "from_day": "2024-03-01", "to_day": "2024-03-03",
        "findings": [{
            "expectation": "residual is 0", "rows_count": 2,
            "rows": [{"hour": "1", "account": "c/a"}, {"hour": "2", "account": "x" * 200}],
        }],
        "page": None,
    }  # fmt: skip
    assert database.query("SELECT target, state FROM notify.deliveries") == [("webhook/chat", "due")]
    assert there.received == [], "sending is for another"


@pytest.mark.parametrize(
    ("page", "told_of"),
    [
        ("https://docs.example.org/gpu_hour.html", "https://docs.example.org/gpu_hour.html"),
        ("data-docs/x.html", None),
    ],
)
def test_a_page_is_named_where_readers_elsewhere_can_open_it(
    database: Database, there: Receiver, page: str, told_of: str | None
) -> None:
    notice_check(Warehouse(url=database.url), "gpu_hour", SPAN, replace(FAILED, page=page), CLOCK)
    assert noticed(database)[0]["data"]["page"] == told_of


@pytest.mark.parametrize("verdict", [Verdict(3), Verdict(3, FAILED.findings, outdated=True)])
def test_what_holds_or_proves_nothing_is_no_news(
    database: Database, there: Receiver, verdict: Verdict
) -> None:
    notice_check(Warehouse(url=database.url), "gpu_hour", SPAN, verdict, CLOCK)
    assert noticed(database) == []


def test_where_nobody_is_to_be_told_nothing_is_written(database: Database) -> None:
    settings.load.cache_clear()
    notice_check(Warehouse(url=database.url), "gpu_hour", SPAN, FAILED, CLOCK)
    assert noticed(database) == []


@pytest.mark.parametrize(
    "breach", ["REVOKE ALL ON notify.notices FROM gpuledger_writer", "DROP SCHEMA notify CASCADE", ""]
)
def test_what_cannot_be_written_down_stops_nothing(
    database: Database, there: Receiver, tmp_path: Path, breach: str
) -> None:
    if breach:
        database.execute(breach)
    else:
        (tmp_path / "recipients.yaml").write_text("nonsense: 1")
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    PROGRESS.addHandler(handler)
    try:
        notice_check(Warehouse(url=database.url), "gpu_hour", SPAN, FAILED, CLOCK)
    finally:
        PROGRESS.removeHandler(handler)
    assert [line for line in said if line.startswith("nobody is told of check.failed: ")]


def test_a_real_gate_that_fails_in_a_roll_up_is_written_down(database: Database, there: Receiver) -> None:
    facts = Facts(
        segments=[Segment("c/a", 5000, NOON_S, NOON_S + HOUR_S)],
        hosts=[Host("h", 4, "healthy", START_S)],
        accounts=["c/a"],
    )
    database.put(facts)
    database.book(facts, "2024-03")
    assert not roll_up(database.url, DAY, DAY, now_s=START_S + 400 * DAY_S).success
    (found,) = noticed(database)
    assert (found["data"]["cluster"], found["data"]["table"]) == ("c", "gpu_bucket")
    of = {each["expectation"]: each for each in found["data"]["findings"]}
    finding = of["no more is occupied than is installed"]
    assert finding["rows_count"] == 4
    assert any("2024-03-01 12:00:00" in value for value in finding["rows"][0].values())


def test_a_close_that_stopped_is_written_down(database: Database, there: Receiver) -> None:
    data = CloseFailed(
        cluster="c", period="2026-11", step="validate", message="does not hold", findings=["x"]
    )
    for _ in range(2):
        notice_close(Warehouse(url=database.url), data, CLOCK)
    (found,) = noticed(database)
    assert found["type"] == "close.failed"
    assert found["data"] == msgspec.to_builtins(data)
