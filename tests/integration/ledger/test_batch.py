"""What rows post and what follows from them: laws 3 and 4 as they show in the tables."""

import msgspec
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    ended,
    granted,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.events.workload import ClassChanged, Resized


def test_a_run_that_ended_is_charged_once_in_each_commodity(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    assert ledger.net() == {("charge", "org/vision", "w1/r1", "1970-01-01"): 8 * GPU_HOUR}
    assert ledger.net("gpu_ms_weighted") == {("charge", "org/vision", "w1/r1", "1970-01-01"): 8000 * GPU_HOUR}


def test_a_charge_moves_from_budget_to_spent_and_free_time_from_free_to_unallocated(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", klass="unallocated"))
    moved = ledger.rows(
        "SELECT code, debit_pot, debit_account, credit_pot, credit_account, credit_period FROM ledger.postings"
        " WHERE commodity = 'gpu_ms' ORDER BY code"
    )
    assert moved == [
        ("charge", "budget", "org/vision", "spent", "org/vision", "1970-01"),
        ("unallocated", "free", "~", "unallocated", "org/vision", "1970-01"),
    ]


def test_a_late_end_takes_back_the_difference_and_names_what_it_corrects(ledger: Ledger) -> None:
    ledger.append(*run_of(0, 2 * HOUR))
    ledger.append(told(HOUR, ended(), source="reconcile/nightly"))
    correction = ledger.rows(
        "SELECT seq, amount, debit_pot, credit_pot, reverses_seq, reason FROM ledger.postings"
        " WHERE commodity = 'gpu_ms' AND seq = 4"
    )
    assert correction == [(4, 8 * GPU_HOUR, "spent", "budget", 3, "workload.ended")]
    assert ledger.total() == 8 * GPU_HOUR


def test_a_correction_upwards_is_posted_with_its_reason_and_reverses_nothing(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    ledger.append(told(2 * HOUR, ended(), source="reconcile/nightly"))
    correction = ledger.rows(
        "SELECT amount, credit_pot, reverses_seq, reason FROM ledger.postings WHERE commodity = 'gpu_ms' AND seq = 4"
    )
    assert correction == [(8 * GPU_HOUR, "spent", None, "workload.ended")]


def test_a_run_moved_to_another_account_leaves_nothing_with_the_first(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR))
    ledger.append(told(0, submitted(account="org/speech"), source="reconcile/mapping"))
    assert ledger.net() == {("charge", "org/speech", "w1/r1", "1970-01-01"): 8 * GPU_HOUR}
    stands = dict(
        ledger.rows(
            "SELECT account, amount FROM ledger.balances WHERE commodity = 'gpu_ms' AND pot = 'spent'"
        )
    )
    assert stands == {"org/vision": 0, "org/speech": 8 * GPU_HOUR}


def test_an_open_run_is_charged_up_to_its_last_change_only(ledger: Ledger) -> None:
    resized = Resized(cluster=CLUSTER, workload="w1", run="r1", gpus_milli=2000, hosts=["h1"])
    ledger.append(told(0, submitted()), told(0, started()))
    assert ledger.total() == 0
    ledger.append(told(HOUR, resized))
    assert ledger.total() == 8 * GPU_HOUR
    ledger.append(told(2 * HOUR, ended()))
    assert ledger.total() == (8 + 2) * GPU_HOUR


def test_a_run_over_a_class_change_is_charged_on_one_side_only(ledger: Ledger) -> None:
    changed = ClassChanged(cluster=CLUSTER, workload="w1", run="r1", klass="unallocated", reason="policy")
    ledger.append(*run_of(0, 3 * HOUR), told(HOUR, changed))
    assert ledger.net() == {
        ("charge", "org/vision", "w1/r1", "1970-01-01"): 8 * GPU_HOUR,
        ("unallocated", "org/vision", "w1/r1", "1970-01-01"): 16 * GPU_HOUR,
    }


def test_debits_equal_credits_and_balances_are_the_fold_of_postings(ledger: Ledger) -> None:
    ledger.append(told(0, granted("org/vision", "1970-01", 100 * GPU_HOUR)))
    ledger.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", klass="unallocated"))
    ledger.append(told(1800, ended(), source="reconcile/x"))
    sums = ledger.rows("SELECT commodity, sum(amount)::bigint FROM ledger.balances GROUP BY 1 ORDER BY 1")
    assert sums == [("gpu_ms", 0), ("gpu_ms_weighted", 0)]
    legs = (
        "SELECT debit_pot AS pot, debit_account AS account, -amount AS amount, commodity FROM ledger.postings"
        " UNION ALL SELECT credit_pot, credit_account, amount, commodity FROM ledger.postings"
    )
    folded = ledger.rows(
        f"SELECT pot, account, commodity, sum(amount)::bigint FROM ({legs}) AS l GROUP BY 1, 2, 3"
    )
    stored = ledger.rows(
        "SELECT pot, account, commodity, sum(amount)::bigint FROM ledger.balances GROUP BY 1, 2, 3"
    )
    assert sorted(folded) == sorted(stored)


def test_a_batch_and_the_same_events_one_by_one_give_the_same_state(ledger: Ledger) -> None:
    events = [*run_of(0, HOUR), *run_of(HOUR, 3 * HOUR, "w2"), told(1800, ended(), source="reconcile/x")]
    ledger.append(*events)
    whole = ledger.net()
    for event in events:
        moved = msgspec.structs.replace(event, data=msgspec.structs.replace(event.data, cluster="beta"))
        ledger.append(moved)
    split = ledger.rows(
        "SELECT book, pot, account, amount FROM ledger.balances WHERE commodity = 'gpu_ms' ORDER BY 1, 2, 3"
    )
    assert [row[1:] for row in split if row[0] == "alpha"] == [row[1:] for row in split if row[0] == "beta"]
    assert sum(whole.values()) * 2 == ledger.total()
