"""``gpuledger admit``: a class and what is set aside, the same answer until it expires."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.registry import Fact
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds

GPU_HOUR = 3_600_000
PRESENT = Calendar().period_of(Calendar().day_of(seconds(SystemClock().now())))
PERIODS = (PRESENT, Calendar().following(PRESENT))
"""A hold reaches into the next period when a test runs at the edge of one."""


@pytest.fixture
def funded(ledger: Ledger, tmp_path: Path) -> Ledger:
    """``org/vision`` is soft; ``org/speech`` is hard and has 4 GPU-hours."""
    grants = ", ".join(f"{{cluster: alpha, period: {p}, gpu_hours: 4}}" for p in PERIODS)
    path = tmp_path / "budget.yaml"
    path.write_text(
        "clusters: {alpha: {gpus: 8, model: h100}}\n"
        f"accounts: {{org/vision: {{grants: [{grants}]}}, org/speech: {{overdraft: hard, grants: [{grants}]}}}}\n"
    )
    ledger.done("budget", "apply", path, "--yes")
    tell(ledger, submitted("w1"), submitted("big", "org/speech"), submitted("free", minimum_runtime_s=0))
    return ledger


def tell(ledger: Ledger, *facts: Fact) -> None:
    engine = make_engine(ledger.url)
    now_s = seconds(SystemClock().now())
    events = [make(id=repr(fact), source="test", at_s=now_s, data=fact)[0] for fact in facts]
    Intake(engine, SystemClock(), Calendar()).take(events)
    engine.dispose()


def submitted(name: str, account: str = "org/vision", minimum_runtime_s: int = 3600) -> Submitted:
    return Submitted(
        cluster="alpha", workload=name, account=account, user="ada", gpus_milli=8000,
        minimum_runtime_s=minimum_runtime_s,
    )  # fmt: skip


def started(name: str, run: str = "r1", attempt: int = 1) -> Started:
    return Started(
        cluster="alpha", workload=name, run=run, attempt=attempt, gpus_milli=8000, hosts=["alpha-0001"]
    )


def held(ledger: Ledger) -> int:
    return sum(
        ledger.done("balance", "org/vision", "--cluster", "alpha", "--period", period)["held_gpu_ms"]
        for period in PERIODS
    )


def test_a_start_is_protected_and_the_answer_stays_the_same(funded: Ledger) -> None:
    before = SystemClock().now()
    first = funded.done("admit", "w1", "--cluster", "alpha")
    expires_at = dt.datetime.fromisoformat(first["expires_at"])
    assert dt.timedelta(seconds=-1) < expires_at - before - dt.timedelta(minutes=15) < dt.timedelta(minutes=5)
    assert {key: value for key, value in first.items() if key not in ("expires_at", "seq")} == {
        "cluster": "alpha",
        "workload": "w1",
        "attempt": 1,
        "class": "allocated",
        "account": "org/vision",
        "gpus_milli": 8000,
        "hold_gpu_ms": 8 * GPU_HOUR,
        "protected_s": 3600,
        "reason": "org/vision is funded: 8.000 GPU-hours are set aside",
        "repeated": False,
    }
    heads = funded.heads()
    assert ("alpha", first["seq"]) in [(book, rows) for book, rows, _ in heads]
    assert funded.done("admit", "w1", "--cluster", "alpha") == {**first, "repeated": True}
    assert funded.heads() == heads
    assert held(funded) == 8 * GPU_HOUR
    funded.checked_digest()


def test_a_hard_account_is_protected_for_what_it_can_pay(funded: Ledger) -> None:
    found = funded.done("admit", "big", "--cluster", "alpha")
    assert (found["class"], found["hold_gpu_ms"], found["protected_s"]) == ("unallocated", 0, 0)
    assert found["reason"].startswith("org/speech is hard and has 4.000 GPU-hours left in ")


def test_who_asks_for_no_protection_gets_none(funded: Ledger) -> None:
    found = funded.done("admit", "free", "--cluster", "alpha")
    assert (found["class"], found["reason"]) == (
        "unallocated",
        "minimum runtime 0 asks to run unallocated",
    )
    assert held(funded) == 0


def test_people_read_a_sentence(funded: Ledger) -> None:
    ran = funded("admit", "w1", "--cluster", "alpha")
    assert (ran.status, ran.err) == (0, "")
    first, second = ran.out.splitlines()
    assert first == "w1 attempt 1: allocated, protected for 3600 s"
    assert second.startswith("org/vision is funded: 8.000 GPU-hours are set aside; start before 20")


@pytest.mark.parametrize(
    ("facts", "arguments", "status", "expected"),
    [
        ([], ["w9", "--cluster", "alpha"], 4, "workload 'w9' was not submitted to 'alpha'"),
        ([], ["w1", "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
        ([], ["w1"], 2, "--cluster"),
        ([started("w1")], ["w1", "--cluster", "alpha"], 2, "workload 'w1' runs already"),
        (
            [Ended(cluster="alpha", workload="w1", reason="cancelled")],
            ["w1", "--cluster", "alpha"],
            2,
            "workload 'w1' is over",
        ),
    ],
)
def test_what_cannot_be_admitted_is_refused(
    funded: Ledger, facts: list[Fact], arguments: list[str], status: int, expected: str
) -> None:
    tell(funded, *facts)
    heads = funded.heads()
    ran = funded("admit", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err
    assert funded.heads() == heads


def test_an_error_is_one_json_document(funded: Ledger) -> None:
    ran = funded("admit", "w9", "--cluster", "alpha", "--json")
    assert (ran.status, ran.out, ran.problem["exit"]) == (4, "", 4)
    assert ran.problem["hint"] == "publish workload.submitted first; the ledger admits what it knows"
