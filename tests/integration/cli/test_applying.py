"""What every command that applies a file does alike."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

FILES = {
    "budget": "accounts: {org/vision: {share: 3}}",
    "inventory": "clusters: {alpha: {gpus: 4, model: h100}}",
}


@pytest.fixture(params=FILES)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_difference_is_shown_booked_and_gone(ledger: Ledger, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILES[kind])
    dry = ledger.done(kind, "apply", path, "--dry-run")
    assert (bool(dry["changes"]), dry["applied"], dry["opened"]) == (True, False, {})
    assert ledger.heads() == []
    done = ledger.done(kind, "apply", path)
    assert (done["changes"], done["applied"]) == (dry["changes"], True)
    heads = ledger.heads()
    assert ledger.done(kind, "apply", path)["changes"] == []
    assert ledger(kind, "apply", path).out == "nothing to change\n"
    assert ledger.heads() == heads


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "no such file"), ("a: [", "is not YAML"), ("color: red", "color is no key; there are")],
)
def test_a_missing_or_wrong_file_is_bad_usage_before_any_database(
    ledger: Ledger, tmp_path: Path, kind: str, content: str | None, expected: str
) -> None:
    path = tmp_path / "file.yaml"
    if content is not None:
        path.write_text(content)
    ran = ledger(kind, "apply", path, "--json")
    assert (ran.status, ran.out) == (2, "")
    assert expected in ran.problem["error"]
    assert str(path) in ran.problem["error"]


def test_from_takes_the_organisations_days(ledger: Ledger, tmp_path: Path, kind: str) -> None:
    zone, path = tmp_path / "zone.yaml", tmp_path / "file.yaml"
    zone.write_text("organisation: {timezone: Asia/Tokyo}")
    path.write_text(FILES[kind])
    ledger.done("budget", "apply", zone)
    ledger.done(kind, "apply", path, "--from", "2026-03-01")
    ((at,),) = ledger.rows(
        "SELECT DISTINCT effective_at::text FROM ledger.journal"
        " WHERE type IN ('host.registered', 'budget.share_set')"
    )
    assert at == "2026-02-28 15:00:00+00"
