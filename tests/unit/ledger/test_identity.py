"""What the journal keeps of a fact: no name of a person, no words that one typed, and a digest that betrays neither."""

import hashlib
import inspect

import pytest
from tests.integration.ledger.books import ended, registered, submitted, told

from gpuledger.cli import grants
from gpuledger.cli.asking import who
from gpuledger.events.budget import (
    AccountCreated,
    AdjustmentPosted,
    Granted,
    OverdraftSet,
    Part,
    PolicyChanged,
    ShareSet,
    Transferred,
    Word,
)
from gpuledger.events.closing import PeriodClosing, PeriodReopened
from gpuledger.events.incident import CreditReversed
from gpuledger.events.mapping import MappingRule
from gpuledger.events.orders import Order
from gpuledger.events.words import ASIDE
from gpuledger.ledger.identity import UserKey, impersonal, person_of, pseudonymous, with_tokens
from gpuledger.ledger.segments import NOBODY

ADA = {"Ada": UserKey(b"key", "u-1")}


def orders(by: str, reason: str) -> list[Order]:
    """One of each kind."""
    said = {"by": by, "reason": reason}
    booked = {"account": "org/a", "cluster": "alpha", "period": "2026-12", "gpu_ms": 5, **said}
    return [
        AccountCreated(account="org/a", **said),
        PolicyChanged(policy="rate_card", weights={"h100": 2000}, **said),
        ShareSet(account="org/a", share=3, **said),
        Granted(**booked),  # type: ignore[arg-type]
        Transferred(to="org/b", **booked),  # type: ignore[arg-type]
        AdjustmentPosted(code="charge", **booked),  # type: ignore[arg-type]
        OverdraftSet(account="org/a", overdraft="hard", **said),
        PeriodClosing(cluster="alpha", period="2026-12", version=1, **said),
        PeriodReopened(cluster="alpha", period="2026-12", version=1, **said),
        CreditReversed(cluster="alpha", workload="w", run="r", incident="i", **said),
    ]


def test_every_fact_that_names_who_ordered_it_is_an_order() -> None:
    from gpuledger.events.registry import fact_type, names

    found = [fact for name in names() if (fact := fact_type(name)) and "by" in fact.__struct_fields__]
    assert set(found) == set(Order.__args__)


@pytest.mark.parametrize("order", orders("Ada", "she asked for it"), ids=lambda order: type(order).__name__)
def test_an_order_of_a_person_keeps_the_token_and_nothing_that_was_typed(order: Order) -> None:
    event = told(0, order, id="x")
    fact, digest = pseudonymous(event, ADA)
    assert fact == type(order)(
        **{**{f: getattr(order, f) for f in order.__struct_fields__}, "by": "u-1", "reason": ASIDE}
    )
    assert digest not in (event.digest, b"")


@pytest.mark.parametrize("number", range(5))
def test_the_digest_of_an_order_is_the_same_whoever_gave_it_with_whatever_words(number: int) -> None:
    digests = {
        pseudonymous(told(0, orders(by, reason)[number], id="x", **extra), {by: UserKey(by.encode(), by)})[1]
        for by in ("Ada", "Grace")
        for reason in ("one", "another")
        for extra in ({}, {"comment": "for Ada"})
    }
    assert len(digests) == 1
    for other in (
        told(1, orders("Ada", "one")[number], id="x"),
        told(0, orders("Ada", "one")[number], id="y"),
    ):
        assert pseudonymous(other, ADA)[1] not in digests
    assert pseudonymous(told(0, orders("Ada", Word.GRANTED)[number], id="x"), ADA)[1] not in digests


@pytest.mark.parametrize("part", [*Part, NOBODY])
@pytest.mark.parametrize("word", Word)
def test_an_order_of_a_program_with_its_own_word_is_left_as_it_is(part: str, word: Word) -> None:
    for order in orders(part, word):
        event = told(0, order)
        assert person_of(order) is None
        assert pseudonymous(event, {}) == (order, event.digest)


def test_an_order_that_says_nothing_of_whom_or_why_is_left_as_it_is() -> None:
    order = AccountCreated(account="org/a")
    event = told(0, order)
    assert pseudonymous(event, {}) == (order, event.digest)


def test_words_that_nobody_signed_are_kept_aside_all_the_same() -> None:
    fact, digest = pseudonymous(told(0, AccountCreated(account="org/a", reason="for Ada"), id="x"), {})
    assert fact == AccountCreated(account="org/a", reason=ASIDE)
    assert digest == hashlib.sha256(told_bytes(fact)).digest()


def told_bytes(fact: object) -> bytes:
    from gpuledger.events.envelope import encode

    return encode(id="x", source="test/stream", at_s=0, data=fact)  # type: ignore[arg-type]


def test_a_user_may_be_called_like_a_part_and_codes_of_other_facts_stay() -> None:
    assert person_of(submitted(user="ingest")) == "ingest"
    assert person_of(submitted(user=NOBODY)) is None
    for fact in (
        ended(reason="she asked for it"),
        registered("h1", 8, reason="rack moved"),
        submitted(user="Ada"),
    ):
        assert impersonal(fact) is fact


def test_what_the_command_line_says_by_itself_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (grants.grant, grants.transfer):
        assert inspect.signature(command).parameters["reason"].default in set(Word)
    monkeypatch.setattr("getpass.getuser", lambda: (_ for _ in ()).throw(OSError))
    assert who() in set(Part)


def mapping(*rules: MappingRule, by: str = "ingest") -> PolicyChanged:
    return PolicyChanged(policy="mapping", rules=list(rules), by=by, reason=Word.MAPPING_FILE)


def test_people_whom_rules_name_are_tokens_and_the_digest_does_not_tell_who() -> None:
    keys = {"Ada": UserKey(b"key", "u-1"), "Bo": UserKey(b"other", "u-2")}
    rules = [MappingRule(user=("Bo", NOBODY, "Ada"), to="org/a"), MappingRule()]
    fact, digest = pseudonymous(told(0, mapping(*rules), id="x"), keys)
    assert fact == mapping(MappingRule(user=(NOBODY, "u-1", "u-2"), to="org/a"), MappingRule())
    others = [MappingRule(user=("Cy", "Di", "Ed"), to="org/a"), MappingRule()]
    others_keys = {name: UserKey(name.encode(), f"u-{name}") for name in ("Cy", "Di", "Ed")}
    assert pseudonymous(told(0, mapping(*others), id="x"), others_keys)[1] == digest
    assert pseudonymous(told(0, mapping(*others[:1]), id="x"), others_keys)[1] != digest


def test_rules_about_nobody_are_left_as_they_are() -> None:
    event = told(0, mapping(MappingRule(account=("a",), to="org/a")), id="x")
    assert pseudonymous(event, {}) == (event.data, event.digest)


def test_a_person_who_has_no_token_stays_a_name_that_matches_nobody() -> None:
    assert with_tokens([MappingRule(user=("Ada", "Bo"))], {"Ada": "u-1"}) == [MappingRule(user=("Bo", "u-1"))]
