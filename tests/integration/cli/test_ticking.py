"""``gpuledger tick``: the clocks of all books, or of one, move to a full hour that has been."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.workload import Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

MARCH_S = int(dt.datetime(2026, 3, 1, tzinfo=dt.UTC).timestamp())
FILE = """
clusters:
  alpha: {gpus: 8, model: h100}
  beta: {gpus: 8, model: h100}
accounts:
  org/vision: {share: 1}
"""


@pytest.fixture
def running(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Two clusters; a run of one hour at most began on alpha at midnight, and its end was lost."""
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-03-01", "--yes")
    named = {"cluster": "alpha", "workload": "w1"}
    facts = [
        Submitted(**named, account="org/vision", user="ada", gpus_milli=8000, time_limit_s=3600),
        Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0001"]),
    ]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take(
        [make(id=str(n), source="test", at_s=MARCH_S, data=fact)[0] for n, fact in enumerate(facts)]
    )
    engine.dispose()
    return ledger


def row(cluster: str, at: str, lost_ends: int = 0, *, repeated: bool = False) -> dict[str, object]:
    return {
        "cluster": cluster,
        "ticked_at": at,
        "lost_ends": lost_ends,
        "revised_credits": 0,
        "sealed_hours": 0,
        "put_aside": 0,
        "repeated": repeated,
    }


def test_all_clocks_move_and_moving_them_again_changes_nothing(running: Ledger) -> None:
    at = "2026-03-01T05:00:00Z"
    assert running.done("tick", "--at", "2026-03-01T05:59:59Z") == {
        "clusters": [row("alpha", at, 1), row("beta", at)]
    }
    heads = running.heads()
    assert running.done("tick", "--at", at) == {
        "clusters": [row("alpha", at, repeated=True), row("beta", at, repeated=True)]
    }
    assert running.heads() == heads
    assert running.hours("account", "--cluster", "alpha") == {"org/vision": "8.000"}
    assert running.usage("account")["estimated_gpu_ms"] == 8 * 3_600_000
    running.checked_digest()


def test_one_clock_moves_to_the_last_full_hour_of_the_present(running: Ledger) -> None:
    before = SystemClock().now()
    (done,) = running.done("tick", "--cluster", "beta")["clusters"]
    ticked = dt.datetime.fromisoformat(done["ticked_at"])
    assert before - dt.timedelta(hours=1) < ticked <= SystemClock().now()
    assert (ticked.minute, ticked.second) == (0, 0)
    assert running.rows("SELECT DISTINCT book FROM ledger.journal WHERE type = 'ledger.ticked'") == [
        ("beta",)
    ]


def test_people_see_a_table(running: Ledger) -> None:
    running.done("tick", "--cluster", "beta", "--at", "2026-03-01T05:00:00Z")
    ran = running("tick", "--at", "2026-03-01T05:00:00Z")
    assert (ran.status, ran.err) == (0, "")
    alpha, beta = (line.split() for line in ran.out.splitlines() if "2026" in line)
    assert alpha == ["alpha", "2026-03-01T05:00:00Z", "1", "0", "0", "0"]
    assert beta == ["beta", "2026-03-01T05:00:00Z", "0", "0", "0", "0", "stood", "there", "before"]


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["--at", "2099-01-01"], 2, "keeps to what has been"),
        (["--at", "-5"], 2, "keeps to what has been"),
        (["--at", "noon"], 2, "'noon' is not a time"),
        (["--cluster", "gamma"], 4, "cluster 'gamma' does not exist"),
    ],
)
def test_what_cannot_be_ticked_is_refused(
    running: Ledger, arguments: list[str], status: int, expected: str
) -> None:
    heads = running.heads()
    ran = running("tick", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err
    assert running.heads() == heads


def test_a_ledger_without_clusters_has_no_clock(ledger: Ledger) -> None:
    assert ledger.done("tick") == {"clusters": []}
