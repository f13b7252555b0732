"""Which notices follow from a state, by hand."""

import datetime as dt

from gpuledger.notify.following import Asked, Close, State, check_failed, close_failed, following
from gpuledger.notify.notices import Kind, Notice
from gpuledger.notify.payloads import BudgetOverrun, CloseFailed, Finding, ProposalMade
from gpuledger.notify.thresholds import THRESHOLDS, Spent

NOW = dt.datetime(2026, 12, 3, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
DAYS = (dt.date(2026, 12, 1), dt.date(2026, 12, 3))


def told(state: State, now: dt.datetime = NOW) -> dict[tuple[str, ...], Notice]:
    return {(each.kind.value, *each.key): each for each in following(state, THRESHOLDS, now)}


def spent(percent: int, account: str = "org/a", given: int = 100) -> Spent:
    return Spent("alpha", "2026-12", account, percent, given)


def close(version: int = 1, **changes: object) -> Close:
    whole = {"digest": "ab" * 32, "sealed_at": NOW - DAY, "reopened_at": None}
    return Close("alpha", "2026-11", version, **{**whole, **changes})  # type: ignore[arg-type]


def test_nothing_follows_from_nothing() -> None:
    assert following(State(), THRESHOLDS, NOW) == []


def test_of_thresholds_that_hold_at_once_the_highest_says_all() -> None:
    found = told(State([spent(85)]))
    assert {key[3:]: each.is_overtaken for key, each in found.items()} == {
        ("org", "50"): True,
        ("org", "80"): False,
        ("org/a", "50"): True,
        ("org/a", "80"): False,
    }


def test_a_program_may_be_below_what_one_of_its_projects_has_reached() -> None:
    found = told(State([spent(85), spent(0, "org/b", 900)]))
    assert [key[3] for key in found] == ["org/a", "org/a"]


def test_an_overrun_is_told_once_a_period_whatever_its_figures() -> None:
    def overrun(forecast: int) -> BudgetOverrun:
        return BudgetOverrun(
            cluster="alpha", period="2026-12", account="org/a", funds_gpu_ms=10, forecast_gpu_ms=forecast,
            low_gpu_ms=9, high_gpu_ms=30, band_percent=80, as_of="2026-12-03T00:00:00Z",
        )  # fmt: skip

    (one,), (other,) = (
        told(State(overruns=[overrun(11)])).values(),
        told(State(overruns=[overrun(20)])).values(),
    )
    assert one.id == other.id
    assert one.account == "org/a"


def test_a_close_is_told_when_it_is_sealed_and_when_it_is_undone() -> None:
    assert told(State(closes=[close(digest=None, sealed_at=None)])) == {}
    sealed = told(State(closes=[close()]))
    assert list(sealed) == [("close.sealed", "alpha", "2026-11", "1")]
    undone = told(State(closes=[close(reopened_at=NOW), close(2)]))
    assert {key: each.is_overtaken for key, each in undone.items()} == {
        ("close.sealed", "alpha", "2026-11", "1"): True,
        ("close.reopened", "alpha", "2026-11", "1"): False,
        ("close.sealed", "alpha", "2026-11", "2"): False,
    }


def test_what_is_long_past_is_told_no_more() -> None:
    """Who turns notices on has years of closes behind them."""
    old = close(sealed_at=NOW - 7 * DAY - dt.timedelta.resolution)
    assert told(State(closes=[old])) == {}
    assert told(State(closes=[old._replace(sealed_at=NOW - 7 * DAY)]))


def failing(*expectations: str) -> list[Finding]:
    return [Finding(expectation=each, rows_count=1, rows=[{"account": "x"}]) for each in expectations]


def test_a_check_that_goes_on_failing_is_one_notice_a_week() -> None:
    first = check_failed("alpha", "usage_hour", DAYS, failing("a", "b"), NOW)
    assert first.id == check_failed("alpha", "usage_hour", DAYS, failing("b", "a"), NOW + 3 * DAY).id
    others = [
        check_failed("alpha", "usage_hour", DAYS, failing("a", "b"), NOW + 4 * DAY),  # a Monday
        check_failed("alpha", "usage_hour", DAYS, failing("a"), NOW),
        check_failed("alpha", "gpu_hour", DAYS, failing("a", "b"), NOW),
        check_failed("beta", "usage_hour", DAYS, failing("a", "b"), NOW),
    ]
    assert len({first.id, *(each.id for each in others)}) == 5


def test_a_check_that_failed_names_rows() -> None:
    (finding,) = check_failed("alpha", "usage_hour", DAYS, failing("a"), NOW).data.findings  # type: ignore[attr-defined]
    assert finding.rows == [{"account": "x"}]


def test_a_close_that_stops_for_another_reason_is_another_notice() -> None:
    def stopped(message: str, *findings: str) -> Notice:
        data = CloseFailed(
            cluster="alpha", period="2026-11", step="validate", message=message, findings=list(findings)
        )
        return close_failed(data, NOW)

    assert stopped("x", "a").id == stopped("x", "a").id
    assert len({stopped("x", "a").id, stopped("y", "a").id, stopped("x", "a", "b").id}) == 3
    assert stopped("x").kind is Kind.CLOSE_FAILED


def asked(**changes: object) -> State:
    data = ProposalMade(
        proposal="p-1", cluster=None, accounts=["org/a", "org/b"], shares=[], times=[], effective_at=None,
        decide_by=None,
    )  # fmt: skip
    whole = {"proposed_at": NOW, "decide_by": None, "state": "pending", "decided_at": None}
    return State(proposals=[Asked(data, **{**whole, **changes})])  # type: ignore[arg-type]


def of_proposal(**changes: object) -> dict[str, bool]:
    """Kind -> whether another says more, after seven days of which the proposal has a part."""
    return {key[0]: each.is_overtaken for key, each in told(asked(**changes)).items()}


def test_a_proposal_is_told_when_it_is_made_and_when_it_is_decided() -> None:
    assert of_proposal() == {"proposal.made": False}
    assert of_proposal(state="approved", decided_at=NOW) == {"proposal.made": True, "proposal.decided": False}
    assert of_proposal(proposed_at=NOW - 8 * DAY) == {}
    assert of_proposal(proposed_at=NOW - 30 * DAY, state="rejected", decided_at=NOW) == {
        "proposal.decided": False
    }


def test_people_are_reminded_two_days_before_an_answer_is_due_and_once() -> None:
    early = {"proposed_at": NOW - 5 * DAY}
    assert of_proposal(**early, decide_by=NOW + 2 * DAY) == {"proposal.made": False}
    for late in (2 * DAY - dt.timedelta.resolution, DAY, 0 * DAY, -2 * DAY):
        assert of_proposal(**early, decide_by=NOW + late) == {"proposal.made": True, "proposal.due": False}
    assert of_proposal(**early, decide_by=NOW, state="withdrawn", decided_at=NOW) == {
        "proposal.made": True,
        "proposal.decided": False,
    }
    assert of_proposal(proposed_at=NOW - 30 * DAY, decide_by=NOW - 8 * DAY) == {}


def test_who_was_given_little_time_was_told_of_it_at_once() -> None:
    assert of_proposal(decide_by=NOW + DAY) == {"proposal.made": False}


def test_a_proposal_is_about_all_accounts_that_it_names() -> None:
    (made,) = told(asked()).values()
    assert (made.accounts, made.account, made.cluster) == (("org/a", "org/b"), None, None)
