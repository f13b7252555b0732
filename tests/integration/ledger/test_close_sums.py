"""What was booked into a period, as a version of its close sealed it: as balances say, and no further."""

from tests.integration.ledger.books import CLUSTER, GPU_HOUR, HOUR, Ledger, run_of
from tests.integration.ledger.test_closing import DECEMBER, IN_NOVEMBER, NOVEMBER, close, funded, lot, reopen

from gpuledger.database.engine import reading
from gpuledger.ledger.booked import Crossing, Sum
from gpuledger.ledger.close_rows import close_of
from gpuledger.ledger.close_sums import crossings, sums

__all__ = ["funded"]

W = 1000 * GPU_HOUR


def found(ledger: Ledger, period: str = NOVEMBER, version: int | None = None) -> list[Sum]:
    with reading(ledger.engine) as reader:
        return sums(reader, CLUSTER, period, close_of(reader, CLUSTER, period, version))


def crossed(ledger: Ledger, period: str = NOVEMBER, version: int | None = None) -> list[Crossing]:
    with reading(ledger.engine) as reader:
        return crossings(reader, CLUSTER, period, close_of(reader, CLUSTER, period, version))


def told(ledger: Ledger, version: int | None = None) -> dict[tuple[str, str], int]:
    return {
        (each.pot, each.code): each.amount // W
        for each in found(ledger, version=version)
        if each.account == "org/vision" and each.commodity == "gpu_ms_weighted"
    }


def test_it_is_what_the_balances_say(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    assert told(funded) == {
        ("budget", "charge"): -40, ("budget", "expiry"): -60, ("budget", "grant"): 100,
        ("expired", "expiry"): 60, ("expired", "rollover"): -30, ("spent", "charge"): 40,
    }  # fmt: skip
    balances = funded.rows(
        "SELECT account, commodity, pot, code, amount FROM ledger.balances WHERE book = 'alpha' AND period = :p"
        " AND amount <> 0",
        p=NOVEMBER,
    )
    assert {(s.account, s.commodity, s.pot, s.code, s.amount) for s in found(funded)} == set(balances)


def test_only_rollovers_cross_and_the_rest_sums_to_them(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    assert crossed(funded) == [Crossing("rollover", -30 * W)]
    assert sum(each.amount for each in found(funded) if each.commodity == "gpu_ms_weighted") == -30 * W


def test_what_a_minimum_grants_crosses_too(ledger: Ledger) -> None:
    from tests.integration.ledger.books import told as event

    from gpuledger.events.budget import AccountCreated

    for name in ("org", "org/vision"):
        ledger.append(event(0, AccountCreated(account=name)))
    ledger.append(event(0, lot(NOVEMBER, 10, rollover="min 15")))
    close(ledger)
    assert crossed(ledger) == [Crossing("grant", -5 * W), Crossing("rollover", -10 * W)]


def test_a_version_that_was_reopened_stays_what_it_was(funded: Ledger) -> None:
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + 5 * HOUR))
    close(funded)
    first = found(funded)
    reopen(funded)
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + HOUR, "late"))
    close(funded)
    assert found(funded, version=1) == first
    assert told(funded)["spent", "charge"] == 48


def test_what_came_late_says_where_it_belongs(funded: Ledger) -> None:
    close(funded)
    funded.append(*run_of(IN_NOVEMBER, IN_NOVEMBER + HOUR, "late"))
    from gpuledger.kernel.clock import instant

    funded.clock.at = instant(IN_NOVEMBER + 60 * 24 * HOUR)
    close(funded, DECEMBER)
    late = {
        (each.pot, each.code, each.amount // W)
        for each in found(funded, DECEMBER)
        if each.belongs_to == NOVEMBER
        and each.account == "org/vision"
        and each.commodity == "gpu_ms_weighted"
    }
    assert ("spent", "charge", 8) in late
