"""Opening a period: who gets how much by default, once."""

import threading

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    Ledger,
    at,
    granted,
    registered,
    run_of,
    told,
)

from gpuledger.database.engine import writing
from gpuledger.events import host
from gpuledger.events.budget import AccountCreated, ShareSet
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.portions import members
from gpuledger.ledger.periods import divide, installed_gpu_ms, open_periods

OCTOBER_S = at("2017-10-01T00:00:00Z")


def create(ledger: Ledger, **shares: int) -> None:
    """Create ``org`` and below it one account for each share."""
    names = ["org", *(f"org/{name}" for name in shares)]
    ledger.append(
        *(told(0, AccountCreated(account=name)) for name in names),
        *(told(0, ShareSet(account=f"org/{n}", share=s, reason="t", by="t")) for n, s in shares.items()),
    )


def opened(ledger: Ledger) -> list[str]:
    with writing(ledger.engine) as writer:
        return open_periods(writer, CLUSTER, clock=ledger.clock, calendar=ledger.calendar)


def grants(ledger: Ledger, period: str = "2017-10") -> dict[str, int]:
    rows = ledger.rows(
        "SELECT account, (amount / 1000)::bigint FROM ledger.balances"
        " WHERE pot = 'budget' AND code = 'grant' AND period = :period",
        period=period,
    )
    return dict(rows)


def test_default_grants_follow_shares_and_sum_to_installed_time_exactly(ledger: Ledger) -> None:
    create(ledger, a=3, b=2, c=2)
    ledger.append(told(0, registered("h1", 1)))
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, account="org/a"))
    assert opened(ledger) == ["2017-10"]
    installed = 31 * 24 * GPU_HOUR
    assert sum(grants(ledger).values()) == installed
    exact = {"org/a": installed * 3 / 7, "org/b": installed * 2 / 7, "org/c": installed * 2 / 7}
    assert all(abs(amount - exact[name]) < 1 for name, amount in grants(ledger).items())


@pytest.mark.parametrize(
    ("zone", "month", "hours"),
    [
        ("UTC", "2017-10", 31 * 24),
        ("Europe/Berlin", "2017-10", 31 * 24 + 1),
        ("Europe/Berlin", "2017-03", 31 * 24 - 1),
        ("America/Los_Angeles", "2017-11", 30 * 24 + 1),
        ("Asia/Kathmandu", "2016-02", 29 * 24),
    ],
)
def test_a_month_is_as_long_as_its_zone_makes_it(ledger: Ledger, zone: str, month: str, hours: int) -> None:
    ledger.calendar = Calendar(zone)
    create(ledger, a=1)
    ledger.append(told(0, registered("h1", 2)))
    middle_s = at(f"{month}-15T12:00:00Z")
    ledger.append(*run_of(middle_s, middle_s + HOUR, account="org/a"))
    assert opened(ledger) == [month]
    assert grants(ledger, month) == {"org/a": hours * 2 * GPU_HOUR}


def test_an_account_with_an_explicit_grant_gets_no_default_and_the_others_keep_their_part(
    ledger: Ledger,
) -> None:
    create(ledger, a=1, b=1)
    ledger.append(told(0, registered("h1", 2)), told(0, granted("org/a", "2017-10", 5 * GPU_HOUR)))
    assert opened(ledger) == ["2017-10"]
    assert grants(ledger) == {"org/a": 5 * GPU_HOUR, "org/b": 31 * 24 * GPU_HOUR}


def test_opening_again_changes_nothing(ledger: Ledger) -> None:
    create(ledger, a=1)
    ledger.append(told(0, registered("h1", 1)))
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, account="org/a"))
    assert opened(ledger) == ["2017-10"]
    before = grants(ledger)
    ledger.append(told(OCTOBER_S, registered("h2", 100)))
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, "w2", account="org/new"))
    assert (opened(ledger), grants(ledger)) == ([], before)


def test_two_workers_that_open_at_once_grant_once(ledger: Ledger) -> None:
    create(ledger, a=1)
    ledger.append(told(0, registered("h1", 1)))
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, account="org/a"))
    second: list[list[str]] = []
    with writing(ledger.engine) as writer:
        assert open_periods(writer, CLUSTER, clock=ledger.clock, calendar=ledger.calendar) == ["2017-10"]
        # The other worker sees the period unopened still, and other facts in ~org than the first did.
        ledger.append(told(9, AccountCreated(account="org/z")))
        thread = threading.Thread(target=lambda: second.append(opened(ledger)))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()  # it waits for the book
    thread.join()
    assert second == [[]]
    assert grants(ledger) == {"org/a": 31 * 24 * GPU_HOUR}


def test_without_installed_capacity_no_period_opens(ledger: Ledger) -> None:
    create(ledger, a=1)
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, account="org/a"))
    assert (opened(ledger), grants(ledger)) == ([], {})


def test_every_period_with_movements_opens_and_no_other(ledger: Ledger) -> None:
    create(ledger, a=1)
    ledger.append(told(0, registered("h1", 1)))
    december_s = at("2017-12-24T00:00:00Z")
    ledger.append(*run_of(OCTOBER_S, OCTOBER_S + HOUR, account="org/a"))
    ledger.append(*run_of(december_s, december_s + HOUR, "w2", account="org/a"))
    assert opened(ledger) == ["2017-10", "2017-12"]


def test_installed_time_counts_hosts_from_registration_to_retirement_within_the_period(
    ledger: Ledger,
) -> None:
    ledger.append(
        told(OCTOBER_S - HOUR, registered("h1", 8)),
        told(OCTOBER_S + HOUR, host.Retired(cluster=CLUSTER, host="h1", gpus=8, gpu_model="H100")),
        told(OCTOBER_S, registered("h2", 2)),
        told(OCTOBER_S + HOUR, registered("h2", 4)),
        told(OCTOBER_S + 9 * HOUR, registered("h3", 64)),
    )
    with writing(ledger.engine) as writer:
        found = installed_gpu_ms(writer, CLUSTER, OCTOBER_S, OCTOBER_S + 2 * HOUR)
    assert found == (8 + 2 + 4) * GPU_HOUR


def test_shares_in_force_at_the_start_of_the_period_count(ledger: Ledger) -> None:
    create(ledger, a=1, b=1)
    ledger.append(told(OCTOBER_S + 1, ShareSet(account="org/a", share=99, reason="t", by="t")))
    ledger.append(told(0, registered("h1", 2)), told(0, granted("org/x", "2017-10", 1)))
    opened(ledger)
    assert grants(ledger)["org/a"] == grants(ledger)["org/b"]


@pytest.mark.parametrize(
    ("shares", "parts"),
    [
        ({}, {"o/a": 25, "o/b/x": 13, "o/b/y": 12, "p": 50}),
        ({"o/b": 0}, {"o/a": 50, "o/b/x": 0, "o/b/y": 0, "p": 50}),
        ({"o": 3, "o/a": 2}, {"o/a": 50, "o/b/x": 13, "o/b/y": 12, "p": 25}),
        ({"o": 0, "p": 0}, {"o/a": 0, "o/b/x": 0, "o/b/y": 0, "p": 0}),
    ],
)
def test_an_amount_is_divided_down_the_tree_by_largest_remainder(
    shares: dict[str, int], parts: dict[str, int]
) -> None:
    assert divide(100, ["o/a", "o/b/x", "o/b/y", "p"], shares) == parts


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ("philly", ["philly/a"]),  # a root of its name owns the cluster alone
        ("gpu1", ["org", "org/a"]),  # no root of its name: every root that is not another cluster's
    ],
)
def test_who_shares_a_cluster(cluster: str, expected: list[str]) -> None:
    paths = ["org", "org/a", "philly/a", "unmapped/x"]  # what nobody owns is granted nothing
    assert members(cluster, paths, ["philly", "gpu1"]) == expected
