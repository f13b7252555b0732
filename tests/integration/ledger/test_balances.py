"""What an account was granted, what it bought, what is left."""

import datetime as dt

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    granted,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger.balances import BalanceQuery, balance, balances

LATE_JANUARY = "1970-01-31T00:00:00Z"
JANUARY_END_S = 31 * 24 * HOUR


@pytest.fixture
def funded(ledger: Ledger) -> Ledger:
    """``org/vision`` has 100 GPU-hours for January, ``org/speech`` none."""
    ledger.append(*(told(0, AccountCreated(account=name)) for name in ("org", "org/vision", "org/speech")))
    ledger.append(told(0, granted("org/vision", "1970-01", 100 * GPU_HOUR)))
    return ledger


def test_available_is_what_was_granted_less_what_was_charged(funded: Ledger) -> None:
    funded.append(*run_of(0, 3 * HOUR), *run_of(0, HOUR, "w2", klass="unallocated"))
    assert funded.balance("org/vision", now=LATE_JANUARY).as_json() == {
        "account": "org/vision",
        "cluster": CLUSTER,
        "period": "1970-01",
        "granted_gpu_ms": 100 * GPU_HOUR,
        "granted_gpu_hours": "100.000",
        "transferred_gpu_ms": 0,
        "transferred_gpu_hours": "0.000",
        "charged_gpu_ms": 24 * GPU_HOUR,
        "charged_gpu_hours": "24.000",
        "held_gpu_ms": 0,
        "held_gpu_hours": "0.000",
        "credited_gpu_ms": 0,
        "credited_gpu_hours": "0.000",
        "expired_gpu_ms": 0,
        "expired_gpu_hours": "0.000",
        "available_gpu_ms": 76 * GPU_HOUR,
        "available_gpu_hours": "76.000",
        "unallocated_gpu_ms": 8 * GPU_HOUR,
        "unallocated_gpu_hours": "8.000",
        "binding_account": "org/vision",
        "own_available_gpu_ms": 76 * GPU_HOUR,
        "own_available_gpu_hours": "76.000",
        "rolled_over_gpu_ms": 0,
        "rolled_over_gpu_hours": "0.000",
    }


def test_every_term_of_the_formula_moves_what_is_available_its_own_way(funded: Ledger) -> None:
    one = 1000 * GPU_HOUR
    pots = [
        ("budget", "transfer", 7),
        ("credited", "credit", 5),
        ("expired", "expiry", 3),
        ("held", "hold", 2),
    ]
    funded.change(
        *(
            f"INSERT INTO ledger.balances VALUES"
            f" ('alpha', 'gpu_ms_weighted', 'org/vision', '1970-01', '{pot}', '{code}', {hours * one})"
            for pot, code, hours in pots
        )
    )
    assert funded.balance("org/vision", now=LATE_JANUARY).available_gpu_ms == (100 + 7 + 5 - 3 - 2) * GPU_HOUR


def test_an_account_without_a_grant_goes_below_zero(funded: Ledger) -> None:
    funded.append(*run_of(0, HOUR, account="org/speech"))
    assert funded.balance("org/speech", now=LATE_JANUARY).available_gpu_ms == -8 * GPU_HOUR


def test_open_runs_are_charged_up_to_now_by_class_and_month(funded: Ledger) -> None:
    funded.append(
        told(0, submitted()),
        told(0, started()),
        told(0, started("w2", klass="unallocated", account="org/vision")),
    )
    january = funded.balance("org/vision", now="1970-01-01T02:00:00Z")
    assert (january.charged_gpu_ms, january.unallocated_gpu_ms) == (16 * GPU_HOUR, 16 * GPU_HOUR)
    assert january.available_gpu_ms == 84 * GPU_HOUR
    february = funded.balance("org/vision", now="1970-02-01T03:00:00Z")
    assert (february.period, february.charged_gpu_ms, february.granted_gpu_ms) == (
        "1970-02",
        24 * GPU_HOUR,
        0,
    )
    whole = funded.balance("org/vision", "1970-01", now="1970-02-01T03:00:00Z")
    assert whole.charged_gpu_ms == 31 * 24 * 8 * GPU_HOUR


def test_an_inner_account_is_the_sum_of_those_below_it(funded: Ledger) -> None:
    funded.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", account="org/speech"))
    org = funded.balance("org", now=LATE_JANUARY)
    assert (org.granted_gpu_ms, org.charged_gpu_ms, org.available_gpu_ms) == (
        100 * GPU_HOUR,
        16 * GPU_HOUR,
        84 * GPU_HOUR,
    )


def test_an_account_whose_name_only_begins_alike_is_not_below(funded: Ledger) -> None:
    funded.append(told(0, AccountCreated(account="org/vision-lab")))
    funded.append(*run_of(0, HOUR, account="org/vision-lab"))
    assert funded.balance("org/vision", now=LATE_JANUARY).charged_gpu_ms == 0


def test_the_newest_period_that_has_begun_is_taken_unless_one_is_named(funded: Ledger) -> None:
    funded.append(
        told(0, granted("org/vision", "1970-02", GPU_HOUR)),
        told(0, granted("org/vision", "1970-03", GPU_HOUR)),
    )
    assert funded.balance("org/vision", now=LATE_JANUARY).period == "1970-01"
    assert funded.balance("org/vision", now="1970-02-01T00:00:00Z").period == "1970-02"
    assert funded.balance("org/vision", "1970-03", now=LATE_JANUARY).period == "1970-03"


def test_which_period_was_the_newest_is_what_it_was_at_the_recorded_time(ledger: Ledger) -> None:
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(
        told(0, granted("org/vision", "2026-12", GPU_HOUR)),
        told(0, granted("org/vision", "2027-01", GPU_HOUR)),
    )
    with reading(ledger.engine) as reader:
        for now, as_of, period in (
            ("2026-12-20T00:00:00Z", None, "2026-12"),
            ("2027-01-20T00:00:00Z", None, "2027-01"),
            ("2027-01-20T00:00:00Z", "2026-12-20T00:00:00+00:00", "2026-12"),
        ):
            query = BalanceQuery(CLUSTER, as_of=dt.datetime.fromisoformat(as_of) if as_of else None)
            assert balance(reader, "org/vision", query, at(now), ledger.calendar).period == period


def test_when_no_period_has_begun_the_first_to_come_is_shown(ledger: Ledger) -> None:
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(
        told(0, granted("org/vision", "1970-04", GPU_HOUR)),
        told(0, granted("org/vision", "1970-03", GPU_HOUR)),
    )
    assert ledger.balance("org/vision", now=LATE_JANUARY).period == "1970-03"


def test_an_unknown_account_is_refused_with_its_nearest_names(funded: Ledger) -> None:
    with pytest.raises(NotFound) as refused:
        funded.balance("org/visoin")
    assert "org/vision" in refused.value.hint


def test_an_account_without_any_movement_there_says_where_to_look(funded: Ledger) -> None:
    with pytest.raises(NotFound, match="no balance on cluster 'alpha' in 1971-01") as refused:
        funded.balance("org/vision", "1971-01")
    assert "usage --by account" in refused.value.hint


def test_all_balances_come_by_cluster_account_and_period_without_the_books_own_pots(funded: Ledger) -> None:
    funded.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", account="org/speech", klass="unallocated"))
    with reading(funded.engine) as reader:
        found = balances(reader, BalanceQuery(), 31 * 24 * HOUR)
    assert [(b.cluster, b.account, b.period) for b in found] == [
        ("alpha", "org/speech", "1970-01"),
        ("alpha", "org/vision", "1970-01"),
    ]


@pytest.mark.parametrize(
    ("from_s", "to_s", "periods"),
    [
        (None, None, {"1970-01", "1970-02", "1970-03"}),
        (JANUARY_END_S, None, {"1970-02", "1970-03"}),
        (JANUARY_END_S - 1, None, {"1970-01", "1970-02", "1970-03"}),
        (None, JANUARY_END_S, {"1970-01"}),
        (None, JANUARY_END_S + 1, {"1970-01", "1970-02"}),
    ],
)
def test_a_window_keeps_the_periods_that_touch_it(
    funded: Ledger, from_s: int | None, to_s: int | None, periods: set[str]
) -> None:
    funded.append(*(told(0, granted("org/vision", period, GPU_HOUR)) for period in ("1970-02", "1970-03")))
    with reading(funded.engine) as reader:
        found = balances(reader, BalanceQuery(from_s=from_s, to_s=to_s), 31 * 24 * HOUR)
    assert {b.period for b in found if b.account == "org/vision"} == periods
