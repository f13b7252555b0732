"""Which versions a close was made under: those in force within the period, as the books said up to its rows."""

from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, run_of, told

from gpuledger.database.engine import reading
from gpuledger.events.budget import AccountCreated, PolicyChanged, ShareSet
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.kernel.clock import instant
from gpuledger.ledger.close_policies import PolicyVersion, policy_versions, told_until

START, END = at("2026-11-01T00:00:00Z"), at("2026-12-01T00:00:00Z")
DAY = 24 * HOUR


def card(at_s: int, weight: int) -> object:
    fact = PolicyChanged(policy="rate_card", weights={"H100": weight}, reason="test", by="test")
    return told(at_s, fact)


def found(ledger: Ledger, seq: int = 10**6, org_seq: int = 10**6) -> list[PolicyVersion]:
    with reading(ledger.engine) as reader:
        return policy_versions(
            reader, CLUSTER, seq=seq, org_seq=org_seq, start=instant(START), end=instant(END)
        )


def of_org(ledger: Ledger, **upto: int) -> list[tuple[str, int]]:
    return [(v.policy, v.seq) for v in found(ledger, **upto) if v.book == "~org"]


def test_those_in_force_within_the_period_are_named(ledger: Ledger) -> None:
    ledger.append(card(START - 9 * DAY, 900))  # type: ignore[arg-type]
    ledger.append(card(START - DAY, 1000), card(START + DAY, 1100), card(END, 1200))  # type: ignore[arg-type]
    assert of_org(ledger) == [("rate_card", 2), ("rate_card", 3)]
    assert of_org(ledger, org_seq=2) == [("rate_card", 2)]
    assert len({version.digest for version in found(ledger)}) == 2


def test_what_the_book_took_over_is_named_too(ledger: Ledger) -> None:
    ledger.append(card(START, 1000))  # type: ignore[arg-type]
    ledger.append(*run_of(START, START + HOUR))
    (applied,) = [version for version in found(ledger) if version.book == CLUSTER]
    assert applied.policy == "rate_card"
    assert [v.book for v in found(ledger, seq=applied.seq - 1)] == ["~org"]


def test_shares_are_one_version_by_the_newest_row_that_set_one(ledger: Ledger) -> None:
    ledger.append(told(0, AccountCreated(account="org")))
    for at_s, share in ((START, 1), (START + DAY, 2), (END, 3)):
        ledger.append(told(at_s, ShareSet(account="org", share=share, reason="test", by="test")))
    assert of_org(ledger) == [("shares", 3)]
    before = found(ledger, org_seq=2)
    assert before != found(ledger)
    assert before[0].effective_at == instant(START)


def test_sources_have_told_up_to_their_newest_heartbeat(ledger: Ledger) -> None:
    for source, at_s in (("b", START), ("a", END), ("b", START + DAY), ("b", START - DAY)):
        ledger.append(told(at_s, Heartbeat(cluster=CLUSTER), source=source))
    with reading(ledger.engine) as reader:
        assert list(told_until(reader, CLUSTER)) == [("a", instant(END)), ("b", instant(START + DAY))]
        assert told_until(reader, CLUSTER, 1) == [("b", instant(START))]
        assert told_until(reader, "beta") == []
