"""What notices say to people."""

import pytest
from msgspec import structs

from gpuledger.notify.payloads import (
    AskedShare,
    AskedTime,
    BudgetOverrun,
    BudgetThreshold,
    CheckFailed,
    CloseFailed,
    CloseReopened,
    CloseSealed,
    Data,
    Finding,
    ProposalDecided,
    ProposalDue,
    ProposalMade,
    Trial,
)
from gpuledger.notify.texts import Table, text_of

HOUR = 3_600_000
PLACE = {"cluster": "alpha", "period": "2026-12"}


def threshold(percent: int, spent: int) -> BudgetThreshold:
    return BudgetThreshold(
        **PLACE,
        account="org/a",
        threshold_percent=percent,
        spent_gpu_ms=spent * HOUR,
        given_gpu_ms=1000 * HOUR,
    )


def test_a_threshold_says_spent_given_and_left_and_never_rounds_up() -> None:
    text = text_of(threshold(80, 899))
    assert text.subject == "org/a: 80 % of the budget of 2026-12 is spent"
    assert dict(text.facts)["Spent"] == "899.0 GPU-hours, 89 %"
    assert dict(text.facts)["Left"] == "101.0 GPU-hours"
    assert "refused" not in text.advice


def test_all_that_is_spent_says_what_comes_of_it() -> None:
    text = text_of(threshold(100, 1200))
    assert dict(text.facts)["Left"] == "-200.0 GPU-hours"
    assert "hard" in text.advice


def test_an_overrun_shows_the_band() -> None:
    text = text_of(
        BudgetOverrun(
            **PLACE, account="org/a", funds_gpu_ms=10 * HOUR, forecast_gpu_ms=12 * HOUR, low_gpu_ms=9 * HOUR,
            high_gpu_ms=15 * HOUR, band_percent=80, as_of="2026-12-03T00:00:00Z",
        )
    )  # fmt: skip
    assert dict(text.facts)["Band of 80 %"] == "9.0 to 15.0 GPU-hours"


def test_a_failed_check_names_rows_and_how_many_it_leaves_out() -> None:
    finding = Finding(expectation="residual is 0", rows_count=22, rows=[{"hour": "h", "residual": "1"}] * 20)
    text = text_of(
        CheckFailed(
            cluster="alpha", table="gpu_hour", from_day="2026-12-01", to_day="2026-12-03", findings=[finding]
        )
    )
    assert text.tables == (
        Table("residual is 0 (22 rows, 2 of them not shown)", ("hour", "residual"), (("h", "1"),) * 20),
    )
    assert dict(text.facts)["Days (UTC)"] == "2026-12-01 to 2026-12-02"
    assert "All that was tried" not in dict(text.facts)


def test_an_expectation_about_no_rows_is_told_all_the_same() -> None:
    finding = Finding(expectation="fresh", rows_count=None, rows=[])
    data = CheckFailed(cluster="a", table="t", from_day="2026-12-01", to_day="2026-12-02", findings=[finding])
    assert text_of(data).tables == (Table("fresh"),)
    page = "https://docs.example.org/x.html"
    assert dict(text_of(structs.replace(data, page=page)).facts)["All that was tried"] == page


@pytest.mark.parametrize(
    ("data", "subject"),
    [
        (CloseSealed(**PLACE, version=1, digest="ab", sealed_at="x"), "2026-12 of alpha is closed"),
        (CloseReopened(**PLACE, version=1, reopened_at="x"), "2026-12 of alpha is open again"),
        (
            CloseFailed(**PLACE, step="settle", message="m", findings=["f"]),
            "The close of 2026-12 of alpha stopped",
        ),
        (Trial(by="ada"), "A test of notifications"),
    ],
)
def test_each_has_a_subject(data: Data, subject: str) -> None:
    assert text_of(data).subject == subject


def test_a_proposal_shows_what_it_asks_for() -> None:
    time = AskedTime(account="org/b", giver="org/a", period="2026-12", gpu_ms=30 * HOUR)
    data = ProposalMade(
        proposal="p-1", cluster="alpha", accounts=["org/a", "org/b"], shares=[AskedShare(account="org/a", share=3)],
        times=[time, AskedTime(account="org/b", giver=None, period="2026-12", gpu_ms=HOUR)], effective_at=None,
        decide_by=None,
    )  # fmt: skip
    text = text_of(data)
    assert text.subject == "Somebody proposes another budget for org/a, org/b"
    assert [table.rows for table in text.tables] == [
        (("org/a", "3"),),
        (("org/b", "org/a", "2026-12", "30.0"), ("org/b", "a new grant", "2026-12", "1.0")),
    ]
    assert dict(text.facts)["Answer due"] == "no day is set"
    assert "gpuledger proposal show p-1" in text.advice


def test_an_answer_that_is_due_and_one_that_was_given() -> None:
    named = {"proposal": "p-1", "cluster": None, "accounts": ["org/a"]}
    due = text_of(ProposalDue(**named, decide_by="2026-12-24T00:00:00Z"))  # type: ignore[arg-type]
    assert "an answer is due 2026-12-24T00:00:00Z" in due.lead
    decided = text_of(ProposalDecided(**named, state="rejected", decided_at="x"))  # type: ignore[arg-type]
    assert decided.subject == "p-1 was rejected"
    assert dict(decided.facts)["Cluster"] == "all"


def test_what_has_no_words_is_not_sent_without_any() -> None:
    with pytest.raises(TypeError, match="Data has no words"):
        text_of(Data())
