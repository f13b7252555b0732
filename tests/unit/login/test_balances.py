"""Rows of ``gbalance``."""

import msgspec
from tests.unit.login import scripted

from gpuledger.client.answers import Balance
from gpuledger.login import balances


def _balance(account: str, **rest: object) -> Balance:
    return msgspec.convert(scripted.balance(account, **rest), Balance)  # type: ignore[arg-type]


def test_the_newest_period_is_that_of_each_account_and_cluster() -> None:
    old, new = _balance("a", period="2026-11"), _balance("a")
    other = _balance("a", cluster="beta", period="2026-10")
    assert balances.newest([old, new, other], None) == (new, other)
    assert balances.newest([old, new, other], "2026-11") == (old,)


def test_what_was_given_counts_transfers_and_what_lapsed() -> None:
    assert balances.given(_balance("a", granted=100, transferred=-20, expired=5)) == 75 * scripted.HOUR


def test_every_column_says_what_it_means() -> None:
    assert list(balances.columns()) == list(balances.MEANINGS)
    assert {*balances.USUAL.split(","), *balances.LONG.split(",")} == set(balances.MEANINGS)


def test_every_column_shows_an_amount_or_a_name() -> None:
    row = _balance("org/a", rolled_over=-3, granted=1234)
    shown = {name: column.text(row) for name, column in balances.columns().items()}
    assert shown["Granted"] == "1,234.0"
    assert shown["RolledOver"] == "-3.0"
    assert (shown["Account"], shown["Binding"], shown["Available"]) == ("org/a", "org/a", "60.0")
