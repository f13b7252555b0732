"""What was set for accounts, and from when on it holds."""

from tests.integration.ledger.books import Ledger, at, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated, ShareSet
from gpuledger.ledger.account_history import account_history

JUNE, JULY = at("2026-06-01T00:00:00Z"), at("2026-07-01T00:00:00Z")


def test_the_last_word_on_an_instant_counts_and_each_holds_until_the_next(ledger: Ledger) -> None:
    ledger.append(told(0, AccountCreated(account="org")), told(JUNE, AccountCreated(account="org/a")))
    for share, since_s in ((2, JULY), (4, JUNE), (3, JUNE)):
        ledger.append(told(since_s, ShareSet(account="org/a", share=share, reason="r", by="b")))
    with reading(ledger.engine) as reader:
        org, leaf = account_history(reader)
    assert (org.is_leaf, leaf.is_leaf) == (False, True)
    assert [one.value for one in leaf.shares] == [3, 2]
    shares = [leaf.as_json(at_s)["share"] for at_s in (JUNE - 1, JUNE, JULY - 1, JULY)]
    assert shares == [None, 3, 3, 2]
    assert leaf.as_json(JULY)["created_at"] == "2026-06-01T00:00:00Z"
