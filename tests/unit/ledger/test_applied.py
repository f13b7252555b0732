"""Policy data that a book took over: each policy apart, whatever the order."""

from typing import Any

from gpuledger.events.budget import PolicyApplied
from gpuledger.events.mapping import MappingRule
from gpuledger.ledger.applied import Applied, card, rules, rules_by_row
from gpuledger.ledger.mapping import Foreign


def applied(seq: int, from_s: int, policy: str, **keys: Any) -> Applied:  # noqa: ANN401
    return Applied(seq, from_s, PolicyApplied(cluster="alpha", org_seq=seq * 10, policy=policy, **keys))


TAKEN_OVER = [
    applied(1, 0, "rate_card", weights={"h100": 2000}),
    applied(2, 0, "mapping", rules=[MappingRule(to="org/a")]),
    applied(5, 0, "mapping", rules=[MappingRule(to="org/b")]),
    applied(7, 50, "rate_card", weights={"h100": 3000}),
]


def test_the_card_and_the_rules_are_made_of_their_own_versions() -> None:
    for order in (TAKEN_OVER, TAKEN_OVER[::-1]):
        assert [card(order).weight("h100", at_s) for at_s in (0, 50)] == [2000, 3000]
        assert rules(order, "alpha").meaning(Foreign("x"), 0).account == "org/b"


def test_each_row_that_changed_the_mapping_says_what_held_from_it_on() -> None:
    found = rules_by_row(TAKEN_OVER[::-1], "alpha")
    assert [(seq, mapping.meaning(Foreign("x"), 0).account) for seq, mapping in found] == [
        (2, "org/a"),
        (5, "org/b"),
    ]


def test_a_book_that_took_nothing_over_follows_nothing() -> None:
    assert card([]).weight("h100", 0) == 1000
    assert not rules([], "alpha")
    assert rules_by_row([], "alpha") == []
