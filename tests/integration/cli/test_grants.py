"""``budget grant``, ``transfer`` and ``adjust``: shown first, booked once per key."""

from pathlib import Path
from typing import Any

import pytest
from tests.commands.fixtures import Ledger

FILE = """
clusters:
  alpha: {gpus: 20, model: h100, gpus_per_host: 8}
accounts:
  org/vision: {share: 3}
  org/speech: {share: 1, grants: [{cluster: alpha, period: 2026-03, gpu_hours: 5}]}
"""
WHERE = ("--cluster", "alpha", "--period", "2026-03")


@pytest.fixture
def budgeted(ledger: Ledger, tmp_path: Path) -> Ledger:
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    ledger.done("budget", "apply", path, "--from", "2026-03-01", "--yes")
    return ledger


def granted(ledger: Ledger, account: str) -> str:
    hours: str = ledger.done("balance", account, *WHERE)["granted_gpu_hours"]
    return hours


def test_a_grant_is_shown_first_and_booked(budgeted: Ledger) -> None:
    heads = budgeted.heads()
    shown = budgeted("budget", "grant", "org/speech", "7.5", *WHERE, "--dry-run")
    assert (shown.status, shown.out) == (0, "1 change not applied\n")
    assert shown.err == "+ grant    org/speech  alpha 2026-03  7.500 GPU-hours\n"
    assert budgeted.heads() == heads

    done = budgeted.done("budget", "grant", "org/speech", "7.5", *WHERE)
    assert (done["applied"], done["repeated"]) == (True, False)
    assert granted(budgeted, "org/speech") == "12.500"


def test_terms_that_mean_the_same_are_the_same_order(budgeted: Ledger) -> None:
    """A day and its first instant, a rule in two spellings."""
    order = ("budget", "grant", "org/speech", "1", *WHERE, "--key", "k", "--priority", "1")
    first = budgeted.done(*order, "--expires", "2026-03-20", "--rollover", " max  7.50")
    again = budgeted.done(*order, "--expires", "2026-03-20T00:00:00Z", "--rollover", "max 7.5")
    assert (again["seq"], again["repeated"]) == (first["seq"], True)


def test_an_order_repeated_under_its_key_is_booked_once(budgeted: Ledger) -> None:
    first = budgeted.done("budget", "grant", "org/speech", "1", *WHERE, "--key", "k")
    again = budgeted.done("budget", "grant", "org/speech", "1", *WHERE, "--key", "k")
    assert again == {**first, "repeated": True}
    assert granted(budgeted, "org/speech") == "6.000"
    other = budgeted("budget", "grant", "org/speech", "2", *WHERE, "--key", "k", "--json")
    assert other.status == 2
    assert "key 'k' stands for another command" in other.problem["error"]


def test_a_transfer_moves_gpu_time(budgeted: Ledger) -> None:
    budgeted.done("budget", "transfer", "org/speech", "org/vision", "2", *WHERE)
    speech = budgeted.done("balance", "org/speech", *WHERE)
    assert (speech["transferred_gpu_hours"], speech["available_gpu_hours"]) == ("-2.000", "3.000")
    budgeted.checked_digest()


def test_a_grant_on_an_inner_account_is_a_limit(budgeted: Ledger) -> None:
    done = budgeted.done("budget", "grant", "org", "3", *WHERE)
    assert done["changes"] == ["+ limit    org  alpha 2026-03  3.000 GPU-hours"]
    speech = budgeted.done("balance", "org/speech", *WHERE)
    assert (speech["available_gpu_hours"], speech["binding_account"]) == ("3.000", "org")


REFUSED = [
    (["grant", "org/speech", "x"], 2, "'x': no number"),
    (["grant", "org/speech", "-1"], 2, "No such option"),
    (["grant", "org/speech", "0"], 2, "not above zero"),
    (["grant", "org/speech", "NaN"], 2, "NaN"),
    (["grant", "org/speech", "1e99"], 2, "out of all bounds"),
    (["grant", "org/speech", "1e999999999"], 2, "out of all bounds"),
    (["grant", "org/speech", "1e9"], 2, "one order moves at most"),
    (
        ["grant", "org/speech", "1", "--key", ""],
        2,
        "an idempotency key has 1 to 200 printable characters, not 0",
    ),
    (["grant", "org/speech", "1", "--key", "k" * 201], 2, "not 201"),
    (["grant", "org/speech", "0.00000001"], 2, "not a whole number of gpu_ms"),
    (["grant", "org/spech", "1"], 4, "account 'org/spech' does not exist"),
    (["grant", "org/speech", "1", "--rollover", "some"], 2, "rollover: 'some' is no rule"),
    (["grant", "org/speech", "1", "--rollover", "min 2 max 1"], 2, "min 2 exceeds max 1"),
    (
        ["grant", "org/speech", "1", "--expires", "2026-03-20T06:00:00Z"],
        2,
        "write 2026-03-20T00:00:00Z (2026-03-20) or 2026-03-21T00:00:00Z (2026-03-21)",
    ),
    (["grant", "org/speech", "1", "--expires", "9999-12-31"], 2, "out of all bounds"),
    (["grant", "org/speech", "1", "--priority", "1000000001"], 2, "less than or equal to 1000000000"),
    (["transfer", "org/speech", "org/vision", "6"], 2, "has 5.000 GPU-hours left"),
    (["transfer", "org/speech", "org", "1"], 2, "is an inner node"),
]


@pytest.mark.parametrize(("arguments", "status", "expected"), REFUSED)
def test_what_cannot_be_is_refused(
    budgeted: Ledger, arguments: list[str], status: int, expected: str
) -> None:
    heads = budgeted.heads()
    ran = budgeted("budget", *arguments, *WHERE)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err
    assert budgeted.heads() == heads


def test_a_cluster_that_is_not_named_is_that_of_the_root(budgeted: Ledger) -> None:
    ran = budgeted("budget", "grant", "org/speech", "1", "--period", "2026-03")
    assert ran.status == 4
    assert "cluster 'org' does not exist" in ran.err
    assert "alpha" in ran.err


def test_an_order_stays_the_same_when_the_account_gets_children(budgeted: Ledger, tmp_path: Path) -> None:
    first = budgeted.done("budget", "grant", "org/speech", "1", *WHERE, "--key", "k")
    path = tmp_path / "more.yaml"
    path.write_text("accounts: {org/speech/child: {share: 1}}")
    budgeted.done("budget", "apply", path)
    again = budgeted.done("budget", "grant", "org/speech", "1", *WHERE, "--key", "k")
    assert (again["seq"], again["repeated"]) == (first["seq"], True)


def test_people_read_whose_limit_binds(budgeted: Ledger) -> None:
    budgeted.done("budget", "grant", "org", "3", *WHERE)
    told = budgeted("balance", "org/speech", *WHERE).out
    assert "5.000 GPU-hours are left of its own; the limit of org binds" in told


def test_amounts_that_no_column_holds_are_refused(budgeted: Ledger) -> None:
    for number in range(12):
        ran = budgeted("budget", "grant", "org/speech", "270000000", *WHERE, "--key", f"k{number}")
        if ran.status:
            break
    assert ran.status == 2
    assert "larger than the ledger can hold" in ran.err
    budgeted.checked_digest()


ADJUST = ("budget", "adjust", "org/speech", *WHERE, "--reason", "promised on paper")


def adjusted(ledger: Ledger, code: str, amount: str, *options: str) -> dict[str, Any]:
    """Adjust; the amount stands after ``--``, because it may begin with a minus."""
    ran = ledger(*ADJUST, "--code", code, *options, "--json", "--", amount)
    assert ran.status == 0, ran.err
    document: dict[str, Any] = ran.json
    return document


@pytest.mark.parametrize(
    ("code", "amount", "shown", "expected"),
    [
        ("grant", "2", "2.000", {"granted": "7.000", "available": "7.000"}),
        ("grant", "-2", "-2.000", {"granted": "3.000", "available": "3.000"}),
        ("charge", "1.5", "1.500", {"granted": "5.000", "charged": "1.500", "available": "3.500"}),
        (
            "credit",
            "1",
            "1.000",
            {"granted": "5.000", "charged": "3.000", "credited": "1.000", "available": "3.000"},
        ),
        ("unallocated", "1", "1.000", {"granted": "5.000", "unallocated": "1.000", "available": "5.000"}),
    ],
)
def test_an_adjustment_moves_what_the_code_moves(
    budgeted: Ledger, code: str, amount: str, shown: str, expected: dict[str, str]
) -> None:
    if code == "credit":  # of nothing nothing is given back
        adjusted(budgeted, "charge", "3")
    heads = budgeted.heads()
    order = (*ADJUST, "--code", code)
    dry = budgeted(*order, "--dry-run", "--", amount)
    assert (dry.status, dry.out) == (0, "1 change not applied\n")
    assert dry.err == f"~ adjust   org/speech  {code}  alpha 2026-03  {shown} GPU-hours\n"
    assert budgeted.heads() == heads

    done = adjusted(budgeted, code, amount, "--corrects", "1", "--key", "k")
    assert done.keys() == {"changes", "applied", "repeated", "seq", "key"}
    assert (done["applied"], done["repeated"], done["key"]) == (True, False, "k")
    again = adjusted(budgeted, code, amount, "--corrects", "1", "--key", "k")
    assert again == {**done, "repeated": True}
    found = budgeted.done("balance", "org/speech", *WHERE)
    names = ("granted", "charged", "credited", "available", "unallocated")
    amounts = {name: found[f"{name}_gpu_hours"] for name in names}
    assert {name: hours for name, hours in amounts.items() if hours != "0.000"} == expected
    budgeted.checked_digest()


def test_an_adjusted_grant_is_not_given_again_by_the_file(budgeted: Ledger, tmp_path: Path) -> None:
    adjusted(budgeted, "grant", "-2")
    path = tmp_path / "budget.yaml"
    assert budgeted.done("budget", "apply", path, "--from", "2026-03-01")["changes"] == []


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["--code", "grant", "--", "0"], 2, "not above zero"),
        (["--code", "grant", "--", "--2"], 2, "not above zero"),
        (["--code", "hold", "1"], 2, "'hold' is not one of"),
        (["1"], 2, "--code"),
        (["--code", "grant", "--reason", " ", "1"], 2, "an adjustment needs a reason"),
        (["--code", "grant", "--corrects", "0", "1"], 2, "--corrects"),
        (["--code", "grant", "--corrects", "99", "1"], 2, "row 99 is not in the book alpha, which has 5"),
    ],
)
def test_an_adjustment_that_cannot_be_is_refused(
    budgeted: Ledger, arguments: list[str], status: int, expected: str
) -> None:
    heads = budgeted.heads()
    ran = budgeted(*ADJUST, *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert expected in ran.err
    assert budgeted.heads() == heads


def test_inner_accounts_have_no_balance_to_adjust(budgeted: Ledger) -> None:
    ran = budgeted("budget", "adjust", "org", "1", *WHERE, "--code", "charge", "--reason", "r")
    assert ran.status == 2
    assert "'org' is an inner node: its limit is all that can be corrected" in ran.err


def test_a_limit_is_lowered_and_the_file_may_say_so(budgeted: Ledger, tmp_path: Path) -> None:
    budgeted.done("budget", "grant", "org", "7", *WHERE)
    order = ("budget", "adjust", "org", *WHERE, "--code", "grant", "--reason", "r")
    dry = budgeted(*order, "--dry-run", "--", "-8")
    assert (dry.status, dry.out) == (2, "")
    assert "7.000 GPU-hours are neither charged nor set aside, not 8.000" in dry.err
    lowered = budgeted(*order, "--json", "--", "-4")
    assert lowered.json["changes"] == ["~ adjust   org  limit  alpha 2026-03  -4.000 GPU-hours"]
    assert budgeted.done("balance", "org/speech", *WHERE)["available_gpu_hours"] == "3.000"
    path = tmp_path / "less.yaml"
    for hours, status in (("2", 2), ("3", 0), ("7", 0)):
        path.write_text(
            f"accounts: {{org: {{grants: [{{cluster: alpha, period: 2026-03, gpu_hours: {hours}}}]}}}}"
        )
        ran = budgeted("budget", "apply", path, "--dry-run")
        assert ran.status == status, ran.err
        assert "+ limit" not in ran.err
