"""Rate cards: from a moment on, beside physical time; what is charged for time after it is restated."""

import datetime as dt

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    empty,
    ended,
    registered,
    run_of,
    started,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.envelope import Event
from gpuledger.events.workload import Resized
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger import queries
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.periods import open_period
from gpuledger.ledger.policies import bring_up_to_date, changed_weights, charged_after, set_weights
from gpuledger.ledger.rebuild import check, rebuild

NET = "SELECT commodity, sum(amount)::bigint FROM ledger.balances WHERE pot = 'spent' GROUP BY commodity ORDER BY 1"


def set_card(ledger: Ledger, at_s: int, **weights: int) -> None:
    with writing(ledger.engine) as writer:
        set_weights(writer, weights, at_s, "ada", clock=ledger.clock, calendar=ledger.calendar)
    with reading(ledger.engine) as reader:
        clusters = queries.clusters(reader)
    for cluster in clusters:
        with writing(ledger.engine) as writer:
            bring_up_to_date(writer, cluster, clock=ledger.clock, calendar=ledger.calendar)


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


def test_a_card_that_reaches_back_restates_what_is_charged(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 3 * HOUR, gpu_model="H100"), *run_of(0, HOUR, "before", gpu_model="H100"))
    with reading(ledger.engine) as reader:
        assert charged_after(reader, HOUR) == 1
    set_card(ledger, HOUR, H100=2000)
    assert ledger.rows(NET)[1] == ("gpu_ms_weighted", (8 + 16 * 2 + 8) * 1000 * GPU_HOUR)
    restated = ledger.rows(
        "SELECT p.workload, p.amount, p.reverses_seq, p.reason FROM ledger.postings AS p JOIN ledger.journal AS j"
        " USING (book, seq) WHERE j.type = 'policy.applied'"
    )
    assert restated == [("w1", 16 * 1000 * GPU_HOUR, None, "policy.applied")]
    set_card(ledger, HOUR, H100=500)
    assert ledger.rows(NET)[1] == ("gpu_ms_weighted", (8 + 16 // 2 + 8) * 1000 * GPU_HOUR)
    assert holds(ledger)


def test_a_new_book_takes_over_the_cards_there_are(ledger: Ledger) -> None:
    set_card(ledger, 0, H100=2000)
    set_card(ledger, HOUR, B200=3000)
    ledger.append(*run_of(0, HOUR, gpu_model="H100"))
    assert ledger.rows("SELECT seq, type FROM ledger.journal WHERE book = 'alpha' ORDER BY seq LIMIT 3") == [
        (1, "policy.applied"),
        (2, "policy.applied"),
        (3, "workload.submitted"),
    ]
    assert ledger.rows(NET)[1] == ("gpu_ms_weighted", 16 * 1000 * GPU_HOUR)


facts = [
    *run_of(0, 3 * HOUR, gpu_model="H100"),
    *run_of(HOUR, 26 * HOUR, "w2", gpu_model="B200", klass="unallocated"),
    told(2 * HOUR, Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=2000, hosts=["h1"])),
    told(4 * HOUR, ended(), source="reconcile/x"),
]
cards = [
    (0, {"H100": 2000}),
    (HOUR, {"H100": 3000, "B200": 10}),
    (HOUR, {"B200": 20}),
    (30 * HOUR, {"H100": 1}),
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations([*facts, "card", "card", "card", "card"]))
def test_facts_and_cards_in_any_order_give_the_same_charges(ledger: Ledger, order: list[Event | str]) -> None:
    """Law 3, with the cards in the order in which they were set."""
    empty(ledger)
    waiting = iter(cards)
    for item in order:
        if isinstance(item, str):
            from_s, weights = next(waiting)
            set_card(ledger, from_s, **weights)
        else:
            ledger.append(item)
    h100 = 8 * 3000 + 2 * 3000 * 2 + 8 * 2000  # the first hour by the first card
    assert dict(ledger.rows(NET)) == {"gpu_ms": (16 + 2 * 2) * GPU_HOUR, "gpu_ms_weighted": h100 * GPU_HOUR}
    assert ledger.rows(
        "SELECT sum(amount)::bigint FROM ledger.balances WHERE pot = 'unallocated' AND commodity = 'gpu_ms_weighted'"
    ) == [(8 * 25 * 20 * GPU_HOUR,)]
    assert holds(ledger)


def test_of_one_moment_the_last_card_counts_and_both_are_kept(ledger: Ledger) -> None:
    set_card(ledger, HOUR, H100=2000, B200=3000)
    set_card(ledger, HOUR, H100=2500)
    with reading(ledger.engine) as reader:
        card = queries.rate_card(reader)
        assert card.steps == {"H100": ((HOUR, 2500),), "B200": ((HOUR, 3000),)}
        versions = queries.policy_versions(reader, "rate_card")
        assert [(at_s, v.weights) for _, at_s, v in versions] == [
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
        rebuild(writer, Calendar())
    assert ledger.rows(NET) == before
    assert holds(ledger)


def test_a_balance_as_of_before_a_card_does_not_know_it(ledger: Ledger) -> None:
    """Law 6, with a run that goes on."""
    ledger.append(told(0, AccountCreated(account="org/vision")))
    ledger.append(told(0, started(gpu_model="H100", account="org/vision", user="ada")))
    then = ledger.value("SELECT max(recorded_at) FROM ledger.journal")
    ledger.clock.at += dt.timedelta(hours=1)

    def charged() -> int:
        query = BalanceQuery(CLUSTER, "1970-01", as_of=then)
        with reading(ledger.engine) as reader:
            return balance(reader, "org/vision", query, 2 * HOUR).charged_gpu_ms

    before = charged()
    set_card(ledger, 0, H100=5000)
    assert charged() == before == 16 * GPU_HOUR
