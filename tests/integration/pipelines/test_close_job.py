"""The close as a job: the same steps, the same file as the command's; what must not go on fails at its step."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from tests.integration.close.closing import NOVEMBER, Books, fill
from tests.integration.ledger.books import CLUSTER, Ledger
from tests.integration.pipelines.notifying import told

from gpuledger import settings
from gpuledger.close import verifying
from gpuledger.close.steps import Stopped
from gpuledger_pipelines.definitions import defs
from gpuledger_pipelines.defs.close.job import CLOSE, PeriodClose, step_of
from gpuledger_pipelines.resources import Warehouse

STEPS = ["freeze", "reconcile", "settle", "validate", "seal", "publish"]


@pytest.fixture
def books(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Books]:
    """A period that is over, as the machine's clock sees it too: the job reads that one."""
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", database_url)
    monkeypatch.setenv("GPULEDGER_CLOSES", str(tmp_path / "closes"))
    monkeypatch.setenv("GPULEDGER_CLOSE_GRACE_HOURS", "0")
    settings.load.cache_clear()
    monkeypatch.setattr("gpuledger.close.steps.SystemClock", lambda: ledger.clock)
    ledger = Ledger(database_url)
    fill(ledger)
    yield Books(ledger, tmp_path / "closes")
    ledger.engine.dispose()
    settings.load.cache_clear()


def ran(books: Books, **config: Any) -> dg.ExecuteInProcessResult:  # noqa: ANN401
    close = {"cluster": CLUSTER, "period": NOVEMBER, **config}
    return defs.resolve_job_def(CLOSE).execute_in_process(
        run_config={
            "resources": {"close": {"config": close}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
        resources={"warehouse": Warehouse(url=books.ledger.url), "close": PeriodClose(**close)},
        raise_on_error=False,
    )


def test_its_steps_are_the_commands_and_leave_its_file(books: Books) -> None:
    result = ran(books)
    assert result.success
    assert [event.step_key for event in result.get_step_success_events()] == STEPS
    assert verifying.verify(books.closer()).ok
    stored = books.stored()
    assert (stored["state"], stored["checks"]) == ("published", stored["checks"])
    assert stored["checks"] > 5
    made = [
        e.step_materialization_data.materialization.asset_key.path
        for e in result.get_asset_materialization_events()
    ]
    assert made == [["warehouse", "close"], ["warehouse", "statement"]]
    assert books.close().repeated, "the command finds that it is closed"


def test_run_again_it_changes_nothing(books: Books) -> None:
    assert ran(books).success
    rows = books.ledger.value("SELECT count(*) FROM ledger.journal")
    assert ran(books).success
    assert books.ledger.value("SELECT count(*) FROM ledger.journal") == rows


def test_what_must_not_go_on_fails_at_its_step_and_is_not_tried_again(books: Books) -> None:
    result = ran(books, period="2026-12")
    (failed,) = result.get_step_failure_events()
    assert failed.step_key == "freeze"
    assert not [event for event in result.all_events if event.is_step_up_for_retry]
    assert books.ledger.value("SELECT count(*) FROM ledger.journal WHERE type LIKE 'period.clos%'") == 0


def test_what_a_gate_finds_is_in_the_failure(books: Books) -> None:
    close = PeriodClose(cluster=CLUSTER, period=NOVEMBER)
    with pytest.raises(dg.Failure) as failure, step_of(close, Warehouse(url=books.ledger.url)):
        raise Stopped("does not hold", ["org/vision: 1 left"], hint="look")
    assert failure.value.metadata["findings"].value == "- org/vision: 1 left"
    assert failure.value.allow_retries is False


def test_sacct_is_asked_only_where_it_is_wanted(books: Books) -> None:
    closer = books.closer()
    assert PeriodClose(cluster=CLUSTER, period=NOVEMBER).compare(closer) is None
    assert PeriodClose(cluster=CLUSTER, period=NOVEMBER, live=True).compare(closer) is not None


@pytest.mark.parametrize(("period", "count"), [("2026-12", 1), (NOVEMBER, 0)])
def test_people_are_told_where_it_stopped_and_why(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period: str, count: int
) -> None:
    with told(tmp_path, monkeypatch) as there:
        ran(books, period=period)
        assert there.received == [], "sending is for another"
    assert books.ledger.value("SELECT count(*) FROM notify.notices WHERE kind = 'close.failed'") == count
    if count:
        found = json.loads(books.ledger.value("SELECT body FROM notify.notices"))["data"]
        assert (found["cluster"], found["period"], found["step"]) == (CLUSTER, period, "freeze")
        assert "2026-12" in found["message"]


def test_what_a_gate_found_is_in_the_notice(
    books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def validate(*_: object) -> int:
        raise Stopped("version 1 does not hold", ["org/vision: 1 left"], hint="look")

    monkeypatch.setattr("gpuledger.close.steps.validate", validate)
    with told(tmp_path, monkeypatch):
        assert not ran(books).success
    found = json.loads(books.ledger.value("SELECT body FROM notify.notices"))["data"]
    assert (found["step"], found["findings"]) == ("validate", ["org/vision: 1 left"])
    assert found["message"] == "version 1 does not hold"
