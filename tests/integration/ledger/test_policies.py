"""Rate cards: from a moment on, beside physical time, and never over what is charged."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    ended,
    registered,
    run_of,
    started,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import queries
from gpuledger.ledger.periods import open_period
from gpuledger.ledger.policies import changed_weights, set_weights
from gpuledger.ledger.rebuild import check, rebuild

NET = "SELECT commodity, sum(amount)::bigint FROM ledger.balances WHERE pot = 'spent' GROUP BY commodity ORDER BY 1"


def set_card(ledger: Ledger, at_s: int, **weights: int) -> None:
    with writing(ledger.engine) as writer:
        set_weights(writer, weights, at_s, "ada", clock=ledger.clock, calendar=ledger.calendar)


def holds(ledger: Ledger) -> bool:
    with reading(ledger.engine) as reader:
        return check(reader, ledger.calendar).ok


def test_physical_and_weighted_amounts_stand_side_by_side(ledger: Ledger) -> None:
    set_card(ledger, HOUR, H100=2500)
    ledger.append(*run_of(0, 3 * HOUR, gpu_model="H100"))
    assert ledger.rows(NET) == [
        ("gpu_ms", 24 * GPU_HOUR),
        ("gpu_ms_weighted", (8 * 1000 + 16 * 2500) * GPU_HOUR),
    ]
    assert holds(ledger)


def test_a_balance_counts_weighted_time_open_runs_included(ledger: Ledger) -> None:
    set_card(ledger, HOUR, H100=3000)
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(told(0, started(gpu_model="H100", account="org/vision", user="ada")))
    found = ledger.balance("org/vision", now="1970-01-01T02:00:00Z")
    assert found.charged_gpu_ms == (8 + 24) * GPU_HOUR
    ledger.append(told(2 * HOUR, ended()))
    assert ledger.balance("org/vision").charged_gpu_ms == (8 + 24) * GPU_HOUR


def test_other_models_and_a_fact_that_comes_late_are_charged_as_of_their_time(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, gpu_model="H100"))
    set_card(ledger, HOUR, H100=2000)
    ledger.append(
        *run_of(0, HOUR, "late", gpu_model="H100"), *run_of(HOUR, 2 * HOUR, "other", gpu_model="A100")
    )
    assert ledger.rows(NET)[1] == ("gpu_ms_weighted", 24 * 1000 * GPU_HOUR)
    ledger.append(told(2 * HOUR, ended("late"), source="reconcile/x"))
    assert ledger.rows(NET)[1] == ("gpu_ms_weighted", (24 + 16) * 1000 * GPU_HOUR)
    assert holds(ledger)


def test_a_card_never_reaches_back_over_what_is_charged(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 3 * HOUR))
    before = ledger.rows("SELECT book, last_seq FROM ledger.books ORDER BY book")
    with pytest.raises(
        Refused, match="would reach back over what is charged: workload 'w1' of alpha up to 1970-01-01T03"
    ):
        set_card(ledger, 3 * HOUR - 1, H100=2000)
    assert ledger.rows("SELECT book, last_seq FROM ledger.books ORDER BY book") == before
    set_card(ledger, 3 * HOUR, H100=2000)


def test_of_one_moment_the_last_card_counts_and_both_are_kept(ledger: Ledger) -> None:
    set_card(ledger, HOUR, H100=2000, B200=3000)
    set_card(ledger, HOUR, H100=2500)
    with reading(ledger.engine) as reader:
        card = queries.rate_card(reader)
        assert card.steps == {"H100": ((HOUR, 2500),), "B200": ((HOUR, 3000),)}
        versions = queries.policy_versions(reader, "rate_card")
        assert [(at_s, v.weights) for at_s, v in versions] == [
            (HOUR, {"B200": 3000, "H100": 2000}),
            (HOUR, {"H100": 2500}),
        ]
        assert changed_weights(reader, {"H100": 2500, "B200": 1, "A100": 1000}, HOUR) == {"B200": (3000, 1)}


def test_default_grants_are_worth_what_the_time_would_be_charged(ledger: Ledger) -> None:
    set_card(ledger, 0, H100=2000)
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(told(0, registered("h1", 4)))
    with writing(ledger.engine) as writer:
        fact = open_period(writer, CLUSTER, "1970-01", clock=ledger.clock, calendar=ledger.calendar)
    physical = 4 * 31 * 24 * GPU_HOUR
    assert fact.installed_gpu_ms == physical
    assert ledger.balance("org/vision", "1970-01").granted_gpu_ms == 2 * physical


def test_everything_comes_back_from_the_journal_under_its_card(ledger: Ledger) -> None:
    set_card(ledger, 0, H100=1234)
    ledger.append(*run_of(0, HOUR, gpu_model="H100"))
    before = ledger.rows(NET)
    with writing(ledger.engine) as writer:
        rebuild(writer)
    assert ledger.rows(NET) == before
    assert holds(ledger)


def test_setting_a_card_waits_for_charges_that_are_being_booked(ledger: Ledger) -> None:
    """Else a charge could be computed under the card of a moment ago."""
    ledger.append(*run_of(0, HOUR))
    with ledger.engine.connect() as other, ThreadPoolExecutor(1) as pool:
        with other.begin():
            other.exec_driver_sql("SELECT 1 FROM ledger.books WHERE book = 'alpha' FOR UPDATE")
            setting = pool.submit(set_card, ledger, 2 * HOUR, H100=1)
            while not ledger.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ExclusiveLock'"
            ):
                assert not setting.done()
        setting.result(timeout=30)
    with reading(ledger.engine) as reader:
        assert queries.rate_card(reader).weight("H100", 2 * HOUR) == 1
