"""``policy-data apply`` and ``list``: the rate card with its versions."""

import datetime as dt
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.integration.pipelines.running import roll_up, why

from gpuledger.database.engine import make_engine, writing
from gpuledger.events.envelope import make
from gpuledger.events.host import HealthObserved
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.ledger.policies import set_weights

TRACE = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:00,3600.0,1,3600.0,vc\n"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text("rate_card: {h100: 1000, b200: 2500}")
    return path


def test_shown_applied_and_listed(ledger: Ledger, card: Path) -> None:
    dry = ledger("policy-data", "apply", card, "--from", "2026-03-01", "--dry-run")
    assert (dry.status, dry.out) == (0, "1 change not applied\n")
    assert dry.err == "~ weight   b200  1000 -> 2500 per mille\n"
    assert ledger.heads() == []

    done = ledger.done("policy-data", "apply", card, "--from", "2026-03-01")
    assert done == {
        "changes": ["~ weight   b200  1000 -> 2500 per mille"],
        "restated_workloads": 0,
        "applied": True,
    }
    assert ledger("policy-data", "apply", card, "--from", "2026-03-01").out == "nothing to change\n"

    before = ledger.done("policy-data", "list", "--at", "2026-02-28")
    assert before["rate_card"] == {"b200": 1000, "h100": 1000}
    after = ledger.done("policy-data", "list", "--at", "2026-03-01")
    assert after["at"] == "2026-03-01T00:00:00Z"
    assert after["organisation"] == {"timezone": "UTC", "period": "month"}
    assert after["rate_card"] == {"b200": 2500, "h100": 1000}
    (version,) = after["versions"]
    assert (version["from"], version["weights"]) == ("2026-03-01T00:00:00Z", {"b200": 2500, "h100": 1000})
    people = ledger("policy-data", "list", "--at", "2026-03-01")
    assert "b200" in people.out
    ledger.checked_digest()


def test_as_of_knows_what_was_set_by_then(ledger: Ledger, card: Path) -> None:
    ledger.done("policy-data", "apply", card, "--from", "2026-03-01")
    ((recorded,),) = ledger.rows("SELECT max(recorded_at) FROM ledger.journal WHERE book = '~org'")
    card.write_text("rate_card: {h100: 1000, b200: 3000}")
    ledger.done("policy-data", "apply", card, "--from", "2026-03-01")
    listed = ("policy-data", "list", "--at", "2026-03-01")
    assert ledger.done(*listed)["rate_card"]["b200"] == 3000
    then = ledger.done(*listed, "--as-of", recorded.isoformat())
    assert (then["rate_card"]["b200"], len(then["versions"])) == (2500, 1)
    before = ledger.done(*listed, "--as-of", "2001-01-01T00:00:00Z")
    assert (before["rate_card"], before["versions"]) == ({}, [])
    assert ledger(*listed, "--as-of", "2026-03-01").status == 2


def test_who_set_a_version_is_named_until_that_person_is_erased(ledger: Ledger, card: Path) -> None:
    ledger.done("policy-data", "apply", card, "--from", "2026-03-01", LOGNAME="ada")
    listed = ("policy-data", "list", "--at", "2026-03-01")
    assert [version["by"] for version in ledger.done(*listed)["versions"]] == ["ada"]
    assert "from 2026-03-01T00:00:00Z by ada: " in ledger(*listed).out
    token = ledger.done("user", "erase", "ada", "--yes")["token"]
    assert [version["by"] for version in ledger.done(*listed)["versions"]] == [token]
    assert f"by {token}: " in ledger(*listed).out


def test_what_is_charged_from_then_on_is_restated(ledger: Ledger, card: Path, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(TRACE)
    ledger.done("import", "philly", trace)
    card.write_text("rate_card: {unknown: 1000, p100: 3000}")
    ledger.done("policy-data", "apply", card, "--from", "2017-10-01T00:30:00Z")
    ran = ledger("policy-data", "apply", card, "--from", "2017-09-01", "--dry-run", "--json")
    assert ran.json["restated_workloads"] == 1
    assert "restated: 1 workload charged for time from then on" in ran.err
    ledger.checked_digest()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("rate_card: {h100: -1}", "rate_card.h100"),
        ("rate_card: {h100: 1.5}", "rate_card.h100"),
        ("cap: 8", "cap is no key; "),
        ("settings: {horizont_s: 8}", "did you mean horizon_s?"),
    ],
)
def test_a_wrong_file_is_bad_usage(ledger: Ledger, card: Path, content: str, expected: str) -> None:
    card.write_text(content)
    ran = ledger("policy-data", "apply", card)
    assert (ran.status, ran.out) == (2, "")
    assert expected in ran.err


def test_a_missing_file_is_bad_usage(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger("policy-data", "apply", tmp_path / "none").status == 2


@pytest.mark.parametrize("name", ["h\\0", "h\\n", ""])
def test_a_model_with_control_characters_is_refused_before_it_is_booked(
    ledger: Ledger, card: Path, name: str
) -> None:
    card.write_text(f'rate_card: {{"{name}": 5}}')
    ran = ledger("policy-data", "apply", card)
    assert (ran.status, ran.out) == (2, "")
    assert ledger.heads() == []


def test_a_call_that_was_killed_between_two_books_is_made_good_by_the_next(
    ledger: Ledger, card: Path, tmp_path: Path
) -> None:
    """What such a call leaves: the card in the organisation's book, and not yet in the cluster's."""
    trace = tmp_path / "t.csv"
    trace.write_text(TRACE)
    ledger.done("import", "philly", trace)
    engine = make_engine(ledger.url)
    with writing(engine) as writer:
        set_weights(writer, {"b200": 2500}, 0, "ada", clock=SystemClock(), calendar=Calendar())
    engine.dispose()
    applied = "SELECT count(*) FROM ledger.journal WHERE book = 'philly' AND type = 'policy.applied'"
    assert ledger.rows(applied) == [(0,)]
    assert ledger("policy-data", "apply", card, "--from", "0").out == "nothing to change\n"
    assert ledger.rows(applied) == [(1,)]


def test_settings_of_the_policy_are_listed_with_their_versions(ledger: Ledger, card: Path) -> None:
    card.write_text("settings: {horizon_s: 43200}\ncluster_settings: {alex: {quantum_s: 600}}")
    ledger.done("policy-data", "apply", card, "--from", "2026-03-01", LOGNAME="ada")
    assert ledger.done("policy-data", "list", "--at", "2026-02-28")["settings"]["horizon_s"] == 86_400
    listed = ledger.done("policy-data", "list", "--at", "2026-03-01")
    assert listed["settings"]["horizon_s"] == 43_200
    assert listed["cluster_settings"] == {"alex": {"quantum_s": 600}}
    assert [(v["cluster"], v["settings"]) for v in listed["versions"]] == [
        (None, {"horizon_s": 43_200}),
        ("alex", {"quantum_s": 600}),
    ]
    people = ledger("policy-data", "list", "--at", "2026-03-01").out
    assert "by ada: alex: quantum_s 600" in people
    assert "alex" in people.partition("setting of the policy")[2]
    ledger.checked_digest()


TABLE = (
    "xid_table: {unhealthy: [48], draining: [63], application: [119], repeated: {}, remap_failed: unhealthy,"
    " remap_pending: draining, lost: unhealthy}"
)
"""What the table in force until now calls unhealthy, 119, is a program's own fault here."""

HOST = {"cluster": "alpha", "host": "alpha-0001"}
FEBRUARY, MARCH = "2026-02", "2026-03"


def tenth(period: str) -> int:
    return Calendar().period_bounds_s(period)[0] + 9 * 86_400


def two_hours_of_trouble(ledger: Ledger, period: str) -> None:
    """XID 119 on a host of eight GPUs, clean two hours later; a job ran on another host before."""
    at_s, named = tenth(period), {"cluster": "alpha", "workload": f"w-{period}"}
    asked = Submitted(**named, account="alpha/vision", user="ada", gpus_milli=8000)
    facts = [
        (at_s, asked),
        (at_s, Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["alpha-0002"])),
        (at_s + 3600, Ended(**named, run="r1", reason="completed")),
        (at_s, HealthObserved(**HOST, kind="xid", gpu_uuid="GPU-1", code=119)),
        (at_s + 7200, HealthObserved(**HOST, kind="clean", gpu_uuid="GPU-1")),
    ]
    engine = make_engine(ledger.url)
    intake = Intake(engine, SystemClock(), Calendar())
    intake.take(
        [make(id=f"{period}/{n}", source="test/alpha", at_s=s, data=f)[0] for n, (s, f) in enumerate(facts)]
    )
    intake.open_periods(["alpha"])
    engine.dispose()


def availability(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """Roll the two days up, and return hours of GPUs that were installed and not healthy on each."""
    monkeypatch.setenv("GPULEDGER_DATABASE_URL", ledger.url)
    days = [dt.datetime.fromtimestamp(tenth(period), dt.UTC).date() for period in (FEBRUARY, MARCH)]
    for day in days:
        result = roll_up(ledger.url, day, day, now_s=tenth("2026-04"), cluster="alpha")
        assert result.success, why(result)
    rows = ledger.rows(
        "SELECT day, installed_gpu_ms / 3600000, (unhealthy_gpu_ms + unhealthy_occupied_gpu_ms) / 3600000"
        " FROM warehouse.layer_metrics_day WHERE cluster = 'alpha'"
    )
    return {f"{day:%Y-%m}": (installed, unhealthy) for day, installed, unhealthy in rows if day in days}


def test_availability_of_an_open_and_a_closed_month_is_computed_anew_under_another_xid_table(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Physics is not sealed, money is: what was unhealthy changes in both months, the closed statement does not."""
    inventory, table = tmp_path / "inventory.yaml", tmp_path / "policy.yaml"
    hosts = ", ".join(f"{{name: alpha-000{n}, gpus: 8, model: h100}}" for n in (1, 2))
    inventory.write_text(f"clusters: {{alpha: {{hosts: [{hosts}]}}}}")
    table.write_text(TABLE)
    ledger.done("inventory", "apply", inventory, "--from", "2026-02-01", "--yes")
    for period in (FEBRUARY, MARCH):
        two_hours_of_trouble(ledger, period)
    ledger.done("close", "run", FEBRUARY, "--cluster", "alpha", "--yes")
    sealed = ledger.done("balance", "alpha/vision", "--cluster", "alpha", "--period", FEBRUARY)
    whole = 16 * 24
    assert availability(ledger, monkeypatch) == {FEBRUARY: (whole, 16), MARCH: (whole, 16)}

    done = ledger.done("policy-data", "apply", table, "--from", "2026-03-01", "--yes")
    assert "~ xid      119  unhealthy -> application" in done["changes"]
    assert availability(ledger, monkeypatch) == {FEBRUARY: (whole, 16), MARCH: (whole, 0)}
    ledger.done("policy-data", "apply", table, "--from", "2026-02-01", "--yes")
    assert availability(ledger, monkeypatch) == {FEBRUARY: (whole, 0), MARCH: (whole, 0)}

    assert ledger.done("balance", "alpha/vision", "--cluster", "alpha", "--period", FEBRUARY) == sealed
    observed = "SELECT count(*) FROM ledger.journal WHERE type = 'health.observed'"
    assert ledger.rows(observed) == [(4,)]
    ledger.checked_digest()
