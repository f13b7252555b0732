"""``mapping apply``, ``test`` and ``unmapped``: an open and a closed month read otherwise, shown first, once."""

from pathlib import Path
from typing import Any

import pytest
from tests.commands.fixtures import Ledger

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock

FEBRUARY, MARCH = "2026-02", "2026-03"
HOUR_S = 3600

OWNED = "rules:\n- {when: {account: ml-vision}, account: org/vision}\n"
MORE = OWNED + "- {when: {account: 'ml-*', partition: debug}, account: 'org/{partition}', kind: debug}\n"
"""The second rule is about a name that the first file leaves without an owner."""


def ran(
    ledger: Ledger, period: str, name: str, hours: int, account: str = "ml-vision", **labels: str
) -> None:
    """A run of 8 GPUs on the tenth of a month, told now."""
    at_s = Calendar().period_bounds_s(period)[0] + 9 * 86_400
    named = {"cluster": "alpha", "workload": name}
    asked = Submitted(**named, account=f"alpha/{account}", user="ada", gpus_milli=8000, labels=labels or None)
    facts = [
        (at_s, asked),
        (at_s, Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0001"])),
        (at_s + hours * HOUR_S, Ended(**named, run="r1", reason="completed")),
    ]
    engine = make_engine(ledger.url)
    intake = Intake(engine, SystemClock(), Calendar())
    events = [
        make(id=f"{name}/{n}", source="slurm/alpha", at_s=s, data=f)[0] for n, (s, f) in enumerate(facts)
    ]
    intake.take(events)
    intake.open_periods(["alpha"])
    engine.dispose()


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "mapping.yaml"
    path.write_text(OWNED)
    return path


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    """February: 40 GPU-hours of one team and 16 of another. March: 24 of the first."""
    ran(ledger, FEBRUARY, "w1", 5)
    ran(ledger, FEBRUARY, "w2", 2, "ml-speech", partition="debug")
    ran(ledger, MARCH, "w3", 3)
    return ledger


def charged(ledger: Ledger, account: str, period: str, *options: str) -> str:
    document = ledger.done("balance", account, "--cluster", "alpha", "--period", period, *options)
    return str(document["charged_gpu_hours"])


def moves(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {m["account"]: (m["before_gpu_hours"], m["after_gpu_hours"]) for m in document["moves"]}


def test_an_open_month_is_read_otherwise_and_the_dry_run_says_so_first(used: Ledger, rules: Path) -> None:
    heads, before = used.heads(), used.hours("account")
    assert before == {"alpha/ml-speech": "16.000", "alpha/ml-vision": "64.000"}

    dry = used("mapping", "apply", rules, "--dry-run")
    assert (dry.status, dry.out) == (0, "1 change not applied\n")
    assert "+ rule     account ml-vision -> org/vision" in dry.err
    assert "org/vision on alpha, allocated: 0.000 -> 64.000" in dry.err
    assert "restated: 3 workloads\n" in dry.err
    assert used.heads() == heads

    done = used.done("mapping", "apply", rules, "--yes")
    assert (done["changes"], done["applied"]) == (["+ rule     account ml-vision -> org/vision"], True)
    assert moves(done) == {
        "alpha/ml-speech": ("16.000", "0.000"),
        "alpha/ml-vision": ("64.000", "0.000"),
        "org/vision": ("0.000", "64.000"),
        "unmapped/ml-speech": ("0.000", "16.000"),
    }
    assert used.hours("account") == {"org/vision": "64.000", "unmapped/ml-speech": "16.000"}
    assert charged(used, "org/vision", MARCH) == "24.000"
    assert charged(used, "alpha/ml-vision", MARCH) == "0.000"
    used.checked_digest()


def test_the_same_file_twice_changes_nothing(used: Ledger, rules: Path) -> None:
    used.done("mapping", "apply", rules, "--yes")
    heads = used.heads()
    again = used.done("mapping", "apply", rules, "--yes")
    assert (again["changes"], again["moves"], again["restated_workloads"]) == ([], [], 0)
    assert used("mapping", "apply", rules).out == "nothing to change\n"
    assert used.heads() == heads


def test_a_closed_month_stays_as_sealed_and_moves_in_the_open_one_with_its_own_day(
    used: Ledger, rules: Path
) -> None:
    """Law 8: a statement does not move; the difference is posted where it can be, and keeps the day it belongs to."""
    used.done("close", "run", FEBRUARY, "--cluster", "alpha", "--yes")
    sealed = used.done("balance", "alpha/ml-vision", "--cluster", "alpha", "--period", FEBRUARY)
    ((since,),) = used.rows("SELECT last_seq FROM ledger.books WHERE book = 'alpha'")

    done = used.done("mapping", "apply", rules, "--from", "2026-02-01", "--yes")
    assert [(p["period"], p["closed"], p["moved_gpu_hours"]) for p in done["periods"]] == [
        (FEBRUARY, True, "56.000"),
        (MARCH, False, "24.000"),
    ]
    assert used.done("balance", "alpha/ml-vision", "--cluster", "alpha", "--period", FEBRUARY) == sealed
    assert charged(used, "alpha/ml-vision", FEBRUARY, "--as-known") == "0.000"
    statement = used("balance", "org/vision", "--cluster", "alpha", "--period", FEBRUARY)
    assert (statement.status, "has no balance" in statement.err) == (4, True)
    assert charged(used, "org/vision", FEBRUARY, "--as-known") == "40.000"
    assert charged(used, "org/vision", MARCH) == "64.000"
    assert charged(used, "org/vision", MARCH, "--as-known") == "24.000"
    booked = used.rows(
        "SELECT effective_on::text, debit_period, debit_account, credit_account, amount / 3600000000, reason,"
        " reverses_seq IS NOT NULL FROM ledger.postings WHERE book = 'alpha' AND workload = 'w1'"
        f" AND commodity = 'gpu_ms_weighted' AND seq > {since} ORDER BY 3"
    )
    assert booked == [
        ("2026-02-10", MARCH, "alpha/ml-vision", "alpha/ml-vision", 40, "policy.applied", True),
        ("2026-02-10", MARCH, "org/vision", "org/vision", 40, None, False),
    ]
    used.checked_digest()


def test_a_later_rule_books_what_had_no_owner_and_leaves_what_had_one(used: Ledger, rules: Path) -> None:
    """What the rules in force at the time leave without an owner a later version decides; all else keeps its payer."""
    used.done("mapping", "apply", rules, "--yes")
    found = used.done("mapping", "unmapped")
    assert [(u["foreign"], u["account"], u["workloads"], u["gpu_hours"]) for u in found["unmapped"]] == [
        ("ml-speech", "unmapped/ml-speech", 1, "16.000")
    ]
    assert found["total_gpu_hours"] == "16.000"
    assert "unmapped/ml-speech" in used("mapping", "unmapped").out

    rules.write_text(MORE.replace("org/vision", "org/elsewhere"))
    done = used.done("mapping", "apply", rules, "--yes")
    assert moves(done) == {"unmapped/ml-speech": ("16.000", "0.000"), "org/debug": ("0.000", "16.000")}
    assert used.hours("account") == {"org/debug": "16.000", "org/vision": "64.000"}
    assert used.done("mapping", "unmapped")["unmapped"] == []
    assert used("mapping", "unmapped").out == "every name has an owner\n"
    rows = used.rows("SELECT body->>'supersedes', seq FROM ledger.journal WHERE body->>'policy' = 'mapping'"
                     " AND book = '~org' ORDER BY seq")  # fmt: skip
    assert [superseded for superseded, _ in rows] == [None, str(rows[0][1])]
    used.checked_digest()


def test_reaching_back_moves_what_was_mapped_before(used: Ledger, rules: Path) -> None:
    used.done("mapping", "apply", rules, "--yes")
    rules.write_text(OWNED.replace("org/vision", "org/elsewhere"))
    quiet = used("mapping", "apply", rules, "--yes")
    assert "nothing that is booked moves; --from reaches back" in quiet.err
    used.done("mapping", "apply", rules, "--from", "2026-03-01", "--yes")
    hours = used.hours("account")
    assert hours == {"org/elsewhere": "24.000", "org/vision": "40.000", "unmapped/ml-speech": "16.000"}
    earlier = used("mapping", "apply", rules, "--from", "2026-01-01", "--dry-run")
    assert "on the rules that were set for then stay in force" in earlier.err


def test_what_comes_later_is_booked_to_whom_the_rules_name_and_to_nobody_else(
    ledger: Ledger, rules: Path
) -> None:
    rules.write_text(MORE)
    ledger.done("mapping", "apply", rules, "--yes", "--from", "2026-01-01")
    ran(ledger, MARCH, "w1", 5)
    ran(ledger, MARCH, "w2", 1, "ml-speech", partition="debug")
    ran(ledger, MARCH, "w3", 1, "other")
    assert ledger.hours("account") == {
        "org/debug": "8.000",
        "org/vision": "40.000",
        "unmapped/other": "8.000",
    }
    accounts = [path for (path,) in ledger.rows("SELECT path FROM ledger.accounts ORDER BY path")]
    assert accounts == ["org", "org/debug", "org/vision", "unmapped", "unmapped/other"]
    assert charged(ledger, "unmapped/other", MARCH) == "8.000"
    ledger.checked_digest()


def test_a_test_shows_the_rule_of_each_name_and_what_would_move(used: Ledger, rules: Path) -> None:
    heads = used.heads()
    rules.write_text(MORE)
    tried = used.done("mapping", "test", rules)
    assert [
        (g["foreign"], g["labels"], g["rule"], g["account"], g["workloads"]) for g in tried["groups"]
    ] == [
        ("alpha/ml-vision", {}, 1, "org/vision", 2),
        ("alpha/ml-speech", {"partition": "debug"}, 2, "org/debug", 1),
    ]
    assert moves(tried)["org/debug"] == ("0.000", "16.000")
    now = used.done("mapping", "test", "--current")
    assert [(g["rule"], g["account"]) for g in now["groups"]] == [
        (None, "alpha/ml-vision"),
        (None, "alpha/ml-speech"),
    ]
    assert now["moves"] == []
    shown = used("mapping", "test", rules, "--cluster", "alpha")
    assert "partition=debug" in shown.out
    assert "~ GPU-hours org/debug on alpha, allocated: 0.000 -> 16.000" in shown.out
    assert used.heads() == heads


@pytest.mark.parametrize("arguments", [[], ["--current", "file"]])
def test_a_test_takes_a_file_or_what_is_in_force(ledger: Ledger, rules: Path, arguments: list[str]) -> None:
    ran = ledger("mapping", "test", *[rules if a == "file" else a for a in arguments])
    assert ran.status == 2
    assert "name a FILE, or --current" in ran.err


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "rules: Field required"),
        ("rules: [{to: org/a}]", "rules.0.to is no key; there are "),
        ("rules: [{when: {colour: red}}]", "rules.0.when.colour is no key; there are "),
        ("rules: [{account: 'org/{user}'}]", "{user} would make a name public"),
        ("rules: [{account: Org/A}]", "is not well formed at 'Org'"),
    ],
)
def test_a_wrong_file_is_bad_usage_and_changes_nothing(
    ledger: Ledger, rules: Path, content: str, expected: str
) -> None:
    rules.write_text(content)
    ran = ledger("mapping", "apply", rules, "--yes")
    assert (ran.status, expected in ran.err) == (2, True), ran.err
    assert ledger.heads() == []


def test_a_missing_file_and_an_unknown_cluster(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger("mapping", "apply", tmp_path / "none.yaml").status == 2
    assert ledger("mapping", "unmapped", "--cluster", "nowhere").status == 4
