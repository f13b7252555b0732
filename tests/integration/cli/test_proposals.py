"""``proposal``: made, shown, discussed and decided from the terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.fixtures import Ledger

BUDGET = """
clusters: {alpha: {gpus: 16, model: H100, gpus_per_host: 8}}
accounts:
  org/vision: {share: 1, grants: [{cluster: alpha, period: 2026-12, gpu_hours: 100}]}
  org/speech: {share: 1}
"""


@pytest.fixture
def divided(ledger: Ledger, tmp_path: Path) -> Ledger:
    """Two programs with the same share; whoever works here may approve what they proposed."""
    file = tmp_path / "budget.yaml"
    file.write_text(BUDGET)
    ledger("budget", "apply", str(file), "--yes")
    return Ledger({**ledger.settings, "GPULEDGER_APPROVAL": "anyone"}, ledger.url)


def shown(ledger: Ledger, name: str, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = ledger("proposal", "show", name, "--json", *options).json
    return found


def test_shares_are_proposed_discussed_and_approved(divided: Ledger) -> None:
    asked = (
        "proposal", "make", "--share", "org/vision=3", "--reason", "a deadline", "--key", "k1", "--yes", "--json",
    )  # fmt: skip
    dry = divided(*asked, "--dry-run")
    assert (dry.json["applied"], dry.json["seq"]) == (False, None)
    assert "share    org/vision -> 3" in dry.err
    assert "50.00 % -> 75.00 % of the cluster" in dry.err
    made = divided(*asked).json
    assert (made["applied"], made["proposal"]) == (True, dry.json["proposal"])
    assert divided(*asked).json == {**made, "repeated": True}
    name = made["proposal"]
    assert divided("proposal", "comment", name, "--reason", "why so much?").status == 0
    assert [row["proposal"] for row in divided("proposal", "list", "--json").json["proposals"]] == [name]
    assert divided("proposal", "approve", name, "--reason", "fine", "--yes").out.startswith("row ")
    told = divided("proposal", "show", name).out
    assert f"{name}, approved: a deadline" in told
    assert "why so much?" in told
    assert "fine" in told
    found = shown(divided, name)
    assert (found["state"], found["decided"]["text"]) == ("approved", "fine")
    assert found["effect"]["shares"][0]["after_ppm"] == 250_000
    assert divided("proposal", "list", "--state", "pending", "--json").json["proposals"] == []
    assert name in divided("proposal", "list", "--state", "approved").out
    again = divided("proposal", "reject", name, "--reason", "no", "--yes")
    assert (again.status, again.out) == (75, "")


def test_gpu_time_is_proposed_and_moved(divided: Ledger) -> None:
    made = divided(
        "proposal", "make", "--transfer", "org/vision:org/speech=30", "--grant", "org/speech=5", "--cluster", "alpha",
        "--period", "2026-12", "--decide-by", "2026-12-20", "--reason", "speech is late", "--yes", "--json",
    ).json  # fmt: skip
    name = made["proposal"]
    assert shown(divided, name)["transfers"][0]["gpu_hours"] == "30.000"
    assert (
        "org/vision 2026-12: -30.000 GPU-hours, 100.000 left before" in divided("proposal", "show", name).out
    )
    assert divided("proposal", "approve", name, "--reason", "fine", "--yes").status == 0
    ask = ("org/vision", "--cluster", "alpha", "--period", "2026-12", "--json")
    assert divided("balance", *ask).json["available_gpu_hours"] == "70.000"


def test_another_person_has_to_approve_where_it_is_set_so(divided: Ledger) -> None:
    made = divided("proposal", "make", "--share", "org/vision=2", "--reason", "more", "--yes", "--json").json
    step = ("proposal", "approve", made["proposal"], "--reason", "fine", "--yes")
    refused = divided(*step, GPULEDGER_APPROVAL="another")
    assert refused.status == 2
    assert "another person has to approve it" in refused.err
    assert divided("proposal", "withdraw", made["proposal"], "--reason", "never mind", "--yes").status == 0


def test_what_a_simulation_said_goes_with_it(divided: Ledger, tmp_path: Path) -> None:
    pair = {"a": 10.5, "b": 12.25, "change": 1.75}
    row = {"account": "org/vision", "gpu_hours": pair, "wait_p90_s": {"a": 60.4, "b": None, "change": None}}
    document = {"scenario": "institute", "world": "gpuledger", "seed": 7, "days": 30, "accounts": [row]}
    file = tmp_path / "compared.json"
    file.write_text(json.dumps(document))
    made = divided(
        "proposal", "make", "--share", "org/vision=2", "--reason", "more", "--simulation", str(file), "--yes", "--json"
    ).json  # fmt: skip
    assert shown(divided, made["proposal"])["simulation"] == {
        "scenario": "institute", "seed": 7, "days": 30,
        "accounts": [{
            "account": "org/vision", "before_gpu_ms": 37_800_000, "after_gpu_ms": 44_100_000,
            "before_wait_p90_s": 60, "after_wait_p90_s": None,
        }],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--share", "org/vision"), "--share: 'org/vision' is not of the form"),
        (("--share", "org/vision=-1"), "'-1' is no share"),
        (("--share", "org/nobody=1"), "org/nobody"),
        (("--grant", "org/vision=5", "--cluster", "alpha"), "--period"),
        (("--grant", "org/vision=5", "--period", "2026-12"), "names none"),
        (("--grant", "org/vision=x", "--period", "2026-12", "--cluster", "alpha"), "no number"),
        (("--transfer", "org/vision=5", "--period", "2026-12", "--cluster", "alpha"), "FROM:TO"),
        (("--share", "org/vision=1", "--from", "tomorrow"), "--from"),
        (("--share", "org/vision=1", "--simulation", "nowhere.json"), "nowhere.json"),
        ((), "1 to 1000 changes"),
    ],
)
def test_what_cannot_be_is_refused(divided: Ledger, options: tuple[str, ...], said: str) -> None:
    refused = divided("proposal", "make", "--reason", "more", "--yes", *options)
    assert refused.status in (2, 4)
    assert refused.out == ""
    assert said in refused.err
    assert divided("proposal", "list", "--json").json["proposals"] == []


def test_there_is_none_of_that_name(divided: Ledger) -> None:
    assert divided("proposal", "show", "p-000000000000").status == 4
    assert divided("proposal", "approve", "p-000000000000", "--reason", "fine", "--yes").status == 4
    assert divided("proposal", "list", "--state", "new").status == 2
