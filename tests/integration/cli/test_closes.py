"""``close run`` and ``close reopen``: shown first, in order, once; ``balance`` as sealed and as known."""

import hashlib
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.integration.notify.receiving import write_recipients

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds

FEBRUARY, MARCH = "2026-02", "2026-03"
HOUR_S = 3600
FILE = """
clusters:
  alpha: {gpus: 8, model: h100}
accounts:
  org/vision:
    share: 1
    grants:
      - {cluster: alpha, period: 2026-02, gpu_hours: 100, rollover: max 30}
      - {cluster: alpha, period: 2026-03, gpu_hours: 50}
"""


def ran(ledger: Ledger, name: str, hours: int) -> None:
    """A run of 8 GPUs on the tenth of February, told now."""
    at_s = Calendar().period_bounds_s(FEBRUARY)[0] + 9 * 86_400
    named = {"cluster": "alpha", "workload": name}
    facts = [
        (at_s, Submitted(**named, account="org/vision", user="ada", gpus_milli=8000)),
        (at_s, Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0001"])),
        (at_s + hours * HOUR_S, Ended(**named, run="r1", reason="completed")),
    ]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), Calendar()).take(
        [
            make(id=f"{name}/{n}", source="test", at_s=at_s, data=fact)[0]
            for n, (at_s, fact) in enumerate(facts)
        ]
    )
    engine.dispose()


@pytest.fixture
def spent(ledger: Ledger, tmp_path: Path) -> Ledger:
    """``org/vision`` used 40 of February's 100 GPU-hours, of which 30 may go on."""
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-02-01", "--yes")
    ran(ledger, "w1", 5)
    return ledger


def close(ledger: Ledger, period: str = FEBRUARY, *options: str) -> dict[str, object]:
    document: dict[str, object] = ledger.done(
        "close", "run", period, "--cluster", "alpha", "--no-gate", *options
    )
    return document


def stands(ledger: Ledger, period: str, *options: str) -> dict[str, str]:
    """Return what the balance says, in GPU-hours, without what is nothing."""
    found = ledger.done("balance", "org/vision", "--cluster", "alpha", "--period", period, *options)
    names = ("granted", "rolled_over", "charged", "expired", "available")
    amounts = {name: found[f"{name}_gpu_hours"] for name in names}
    return {name: amount for name, amount in amounts.items() if float(amount)}


FILES = ["close.json", "statement.html", "statement.pdf", "statement.parquet", "SHA256SUMS"]
OPEN = {"granted": "100.000", "charged": "40.000", "available": "60.000"}
SEALED = {"granted": "100.000", "charged": "40.000", "expired": "60.000"}


def test_a_close_is_shown_first_and_happens_once(spent: Ledger) -> None:
    heads = spent.heads()
    shown = spent("close", "run", FEBRUARY, "--cluster", "alpha", "--dry-run")
    assert (shown.status, shown.out) == (0, "1 change not applied\n")
    assert shown.err == "~ close    alpha 2026-02\n"
    assert close(spent, FEBRUARY, "--dry-run") == {"cluster": "alpha", "period": FEBRUARY, "applied": False}
    assert spent.heads() == heads
    assert stands(spent, FEBRUARY) == OPEN

    done = close(spent, FEBRUARY, "--yes")
    types = dict(spent.rows("SELECT seq, type FROM ledger.journal WHERE book = 'alpha'"))
    assert done == {
        "cluster": "alpha",
        "period": FEBRUARY,
        "version": 1,
        "closing_seq": next(seq for seq, type_ in types.items() if type_ == "period.closing"),
        "closed_seq": next(seq for seq, type_ in types.items() if type_ == "period.closed"),
        "sealed_seq": next(seq for seq, type_ in types.items() if type_ == "period.sealed"),
        "digest": hashlib.sha256(
            (spent.home / "closes/alpha/2026-02/v1/close.json").read_bytes()
        ).hexdigest(),
        "checks": 0,
        "reconciled": None,
        "folder": str(spent.home / "closes/alpha/2026-02/v1"),
        "files": FILES,
        "left_out": [],
        "repeated": False,
        "applied": True,
    }
    assert stands(spent, FEBRUARY) == SEALED
    assert stands(spent, MARCH) == {"granted": "80.000", "rolled_over": "30.000", "available": "80.000"}
    (february, _) = spent.done("period", "list")["periods"]
    assert (february["period"], february["state"]) == (FEBRUARY, "closed")

    heads = spent.heads()
    assert close(spent) == {**done, "repeated": True}
    assert spent.heads() == heads
    spent.checked_digest()


def test_what_comes_late_is_known_and_leaves_what_is_sealed(spent: Ledger) -> None:
    close(spent)
    ran(spent, "late", 5)
    assert stands(spent, FEBRUARY) == SEALED
    assert stands(spent, FEBRUARY, "--as-known") == {
        "granted": "100.000",
        "charged": "80.000",
        "expired": "20.000",
    }
    assert stands(spent, MARCH)["available"] == stands(spent, MARCH, "--as-known")["available"] == "70.000"
    where = ("balance", "org/vision", "--cluster", "alpha", "--period", FEBRUARY)
    assert spent.done(*where)["basis"] == "as_sealed"
    assert spent.done(*where, "--as-known")["basis"] == "as_known"
    assert "org/vision on alpha, 2026-02, as known" in spent(*where, "--as-known").out
    spent.checked_digest()


def test_a_reopened_period_takes_bookings_and_closes_as_another_version(spent: Ledger) -> None:
    close(spent)
    heads = spent.heads()
    order = ("close", "reopen", FEBRUARY, "--cluster", "alpha", "--reason", "an invoice was late")
    shown = spent(*order, "--dry-run")
    assert (shown.status, shown.out, shown.err) == (0, "1 change not applied\n", "~ reopen   alpha 2026-02\n")
    assert spent.heads() == heads

    assert spent.done(*order, "--yes") == {
        "cluster": "alpha",
        "period": FEBRUARY,
        "version": 1,
        "applied": True,
    }
    assert stands(spent, FEBRUARY) == OPEN
    assert stands(spent, MARCH) == {"granted": "50.000", "available": "50.000"}
    again = spent("close", "run", FEBRUARY, "--cluster", "alpha", "--no-gate")
    steps = ("freeze", "reconcile", "settle", "validate", "seal", "publish")
    assert again.status == 0
    assert again.err == "~ close    alpha 2026-02\n" + "".join(f"  {step}\n" for step in steps)
    assert again.out.startswith("2026-02 of alpha is closed: version 2, row ")
    assert stands(spent, FEBRUARY) == SEALED
    spent.checked_digest()


def test_the_reason_of_a_reopening_is_kept_aside(spent: Ledger) -> None:
    close(spent)
    spent.done("close", "reopen", FEBRUARY, "--cluster", "alpha", "--reason", "an invoice was late")
    ((body,),) = spent.rows("SELECT body::text FROM ledger.journal WHERE type = 'period.reopened'")
    assert "invoice" not in body
    assert spent.rows(
        "SELECT count(*) FROM side.texts WHERE convert_from(body, 'UTF8') LIKE '%invoice%'"
    ) == [(1,)]


def test_people_read_that_it_was_closed_before(spent: Ledger) -> None:
    close(spent)
    said, *rest = spent("close", "run", FEBRUARY, "--cluster", "alpha").out.splitlines()
    assert said.endswith(", closed before")
    assert [line.split()[0] for line in rest] == ["sealed", "files"]


def test_great_expectations_validates_before_the_seal(spent: Ledger) -> None:
    done = spent.done("close", "run", FEBRUARY, "--cluster", "alpha")
    assert done["checks"] > 5
    ((state, checks),) = spent.rows("SELECT state, checks FROM warehouse.close")
    assert (state, checks) == ("published", done["checks"])


def test_what_does_not_hold_is_a_problem_that_is_named_and_nothing_is_sealed(
    spent: Ledger, tmp_path: Path
) -> None:
    close(spent, "2026-02", "--dry-run")
    spent.change(
        "CREATE FUNCTION pg_temp_fault() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN NEW.held_gpu_ms_weighted := -1; RETURN NEW; END$$;"
        "CREATE TRIGGER fault BEFORE INSERT ON warehouse.statement FOR EACH ROW EXECUTE FUNCTION pg_temp_fault()"
    )
    ran = spent("close", "run", FEBRUARY, "--cluster", "alpha", "--json")
    assert (ran.status, ran.out) == (3, "")
    assert ran.problem["exit"] == 3
    assert any("no amount is negative" in finding for finding in ran.problem["findings"])
    assert any("statement in the warehouse" in finding for finding in ran.problem["findings"])
    told = spent("close", "run", FEBRUARY, "--cluster", "alpha", "--no-gate")
    assert told.status == 3
    assert "hint: gpuledger audit verify" in told.err
    assert spent.rows("SELECT count(*) FROM ledger.journal WHERE type = 'period.sealed'") == [(0,)]

    assert spent.rows("SELECT count(*) FROM notify.notices") == [(0,)], "nobody was to be told anything"
    recipients = {"GPULEDGER_NOTIFICATIONS": str(write_recipients(tmp_path, "https://hooks.example.org/"))}
    for _ in range(2):
        again = spent("close", "run", FEBRUARY, "--cluster", "alpha", "--no-gate", **recipients)
        assert again.status == 3
    ((kind, body, target),) = spent.rows(
        "SELECT kind, body::jsonb->'data', target FROM notify.notices JOIN notify.deliveries ON notice = id"
    )
    assert (kind, target) == ("close.failed", "webhook/chat")
    assert (body["cluster"], body["period"], body["step"]) == ("alpha", FEBRUARY, "validate")
    assert any("statement in the warehouse" in finding for finding in body["findings"])

    spent.change("DROP TRIGGER fault ON warehouse.statement; DELETE FROM warehouse.statement")
    spent.change("DELETE FROM warehouse.close")
    assert close(spent)["version"] == 1


def test_an_adjustment_of_a_closed_period_is_booked_in_the_open_one(spent: Ledger) -> None:
    close(spent)
    adjusted = spent(
        "budget", "adjust", "org/vision", "--cluster", "alpha", "--period", FEBRUARY, "--code", "charge",
        "--reason", "billed twice", "--", "-35",
    )  # fmt: skip
    assert adjusted.status == 0, adjusted.err
    assert stands(spent, FEBRUARY) == SEALED
    assert stands(spent, FEBRUARY, "--as-known")["charged"] == "5.000"
    spent.checked_digest()


PRESENT = Calendar().period_of(Calendar().day_of(seconds(SystemClock().now())))
REFUSED = [
    (["run", FEBRUARY], 2, "--cluster"),
    (["run", FEBRUARY, "--cluster", "beta"], 4, "cluster 'beta' does not exist"),
    (["run", MARCH, "--cluster", "alpha"], 2, "2026-02 of alpha is still open"),
    (["run", PRESENT, "--cluster", "alpha"], 2, f"{PRESENT} is not over before"),
    (["run", "soon", "--cluster", "alpha"], 2, "not of the form YYYY-MM"),
    (["run", FEBRUARY, "--cluster", "alpha", "--record", "none.json"], 2, "none.json"),
    (["reopen", FEBRUARY, "--cluster", "alpha"], 2, "--reason"),
    (["reopen", FEBRUARY, "--cluster", "alpha", "--reason", " "], 2, "a reopening needs a reason"),
    (["reopen", FEBRUARY, "--cluster", "alpha", "--reason", "x"], 2, "2026-02 of alpha is open, not closed"),
    (["reopen", FEBRUARY, "--cluster", "beta", "--reason", "x"], 4, "cluster 'beta' does not exist"),
]


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(("arguments", "status", "expected"), REFUSED)
def test_what_cannot_be_is_refused_dry_or_not(
    spent: Ledger, arguments: list[str], status: int, expected: str, *, dry_run: bool
) -> None:
    heads = spent.heads()
    found = spent("close", *arguments, *(["--dry-run"] if dry_run else []))
    assert (found.status, found.out) == (status, "")
    assert expected in found.err
    assert spent.heads() == heads


def test_a_closed_period_takes_no_grant_and_is_not_opened(spent: Ledger) -> None:
    close(spent)
    grant = spent("budget", "grant", "org/vision", "1", "--cluster", "alpha", "--period", FEBRUARY)
    assert grant.status == 2
    assert "2026-02 of alpha is closed" in grant.err
    opened = spent("period", "open", FEBRUARY, "--cluster", "alpha")
    assert opened.status == 2
    assert "gpuledger close reopen takes bookings again" in opened.err
