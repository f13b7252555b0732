"""What a workload asks for as time goes by: updates count from their moment, key by key, whatever their order."""

import datetime as dt
from itertools import permutations

import msgspec
import pytest

from gpuledger.events import workload as events
from gpuledger.events.mapping import MappingRule
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import Rules, Version
from gpuledger.ledger.requests import LATEST_S, asked_at, requests_of, said_otherwise

NAMED = {"cluster": "c", "workload": "w"}


def known(at_s: int, fact: events.WorkloadFact, source: str = "s") -> Known:
    return Known(fact, at_s, source, msgspec.json.encode(fact))


def submitted(at_s: int = 10, **keys: object) -> Known:
    return known(
        at_s, events.Submitted(**NAMED, **{"account": "org/a", "user": "u", "gpus_milli": 8000, **keys})
    )


def updated(at_s: int, source: str = "s", **keys: object) -> Known:
    return known(at_s, events.Updated(**NAMED, **keys), source)


def test_an_update_changes_what_it_names_from_its_moment_on() -> None:
    told = requests_of([submitted(priority=1, time_limit_s=60), updated(20, priority=5)])
    asked = [asked_at(told, at_s) for at_s in (0, 10, 19, 20, LATEST_S)]
    assert [a.asked.priority for a in asked if a] == [1, 1, 1, 5, 5]
    assert {a.asked.time_limit_s for a in asked if a} == {60}
    assert {a.at_s for a in asked if a} == {10}
    assert [request.changed for request in told] == [(), ("priority",)]


def test_later_updates_build_on_earlier_ones_in_any_order_of_arrival() -> None:
    facts = [submitted(), updated(20, priority=5), updated(30, account="org/b"), updated(40, time_limit_s=0)]
    stories = [requests_of(order) for order in permutations(facts)]
    assert all(told == stories[0] for told in stories)
    last = stories[0][-1].understood
    assert (last.asked.priority, last.meaning.account, last.asked.time_limit_s) == (5, "org/b", 0)


def test_of_one_moment_the_higher_ranked_counts_key_by_key() -> None:
    stream = updated(20, priority=5, time_limit_s=60)
    truth = updated(20, "reconcile/s", priority=7)
    asked = asked_at(requests_of([truth, submitted(), stream]), 20)
    assert asked is not None
    assert (asked.asked.priority, asked.asked.time_limit_s) == (7, 60)
    assert said_otherwise([stream, truth]) == {"priority": truth, "time_limit_s": stream}


def test_a_submission_says_anew_what_was_asked_for_before_it() -> None:
    told = requests_of([submitted(10), updated(20, account="org/b"), submitted(30, account="org/c")])
    assert [request.understood.meaning.account for request in told] == ["org/c"]


def test_an_update_at_the_moment_of_the_submission_counts() -> None:
    asked = asked_at(requests_of([submitted(10), updated(10, account="org/b")]), 10)
    assert asked is not None
    assert asked.meaning.account == "org/b"


def test_updates_wait_for_their_submission() -> None:
    assert requests_of([updated(20, account="org/b")]) == ()
    assert asked_at((), 20) is None


def test_an_update_that_changes_nothing_is_no_moment() -> None:
    assert len(requests_of([submitted(priority=5), updated(20, priority=5), updated(30)])) == 1


def test_a_time_to_start_and_an_account_are_told_even_where_they_stay() -> None:
    at = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    told = requests_of([submitted(eligible_at=at), updated(20, eligible_at=at, account="org/a")])
    assert told[-1].changed == ("account", "eligible_at")
    assert (told[-1].account_s, told[-1].eligible_s) == (20, int(at.timestamp()))


@pytest.mark.parametrize(
    ("change", "payer"),
    [
        ({"account": "theirs"}, "lab/new"),
        ({"labels": {"partition": "long"}}, "lab/long"),
        ({"labels": {"qos": "x"}}, "lab/old"),
        ({"account": "nobodys"}, "unmapped/nobodys"),
    ],
)
def test_names_are_read_by_the_rules_of_the_submissions_moment(change: dict[str, object], payer: str) -> None:
    old = [
        MappingRule(labels={"partition": ("long",)}, to="lab/long"),
        MappingRule(account=("ours",), to="lab/old"),
        MappingRule(account=("theirs",), to="lab/new"),
    ]
    rules = Rules(
        [Version(0, 1, old), Version(15, 2, [MappingRule(account=("o*", "t*"), to="lab/other")])], "c"
    )
    facts = [submitted(account="ours", labels={"partition": "short", "qos": "y"}), updated(20, **change)]
    asked = asked_at(requests_of(facts, rules), 20)
    assert asked is not None
    assert asked.meaning.account == payer
    if "labels" in change:
        assert asked.asked.labels == {"partition": "short", "qos": "y", **change["labels"]}  # type: ignore[dict-item]
