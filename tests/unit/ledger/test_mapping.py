"""Which rule decides about a workload, who pays, and under which terms it runs."""

import time
from typing import Any

import pytest

from gpuledger.events.mapping import MappingRule
from gpuledger.events.workload import Submitted
from gpuledger.ledger.facts import Known
from gpuledger.ledger.mapping import AS_GIVEN, Foreign, Matched, Meaning, Rules, Version

CATCH_ALL = MappingRule(to="org/rest")


def mapped(*rules: MappingRule, cluster: str = "philly") -> Rules:
    return Rules([Version(0, 7, rules)], cluster)


def payer(rule: MappingRule, account: str = "philly/ee9e8c", **labels: str) -> str:
    """Return who pays under one rule; ``unmapped/...`` when it does not match."""
    return mapped(rule).meaning(Foreign(account, labels=tuple(sorted(labels.items()))), 0).account


def submitted(at_s: int = 0, source: str = "slurm/a", digest: bytes = b"1", **keys: Any) -> Known:  # noqa: ANN401
    asked = {"account": "philly/ee9e8c", "user": "u-1", "gpus_milli": 8000, **keys}
    return Known(Submitted(cluster="philly", workload="w1", **asked), at_s, source, digest)


def test_without_rules_accounts_are_those_of_the_source_under_the_built_in_terms() -> None:
    assert AS_GIVEN.meaning(Foreign("philly/x"), 0) == Meaning(
        "philly/x", is_unallocated=False, minimum_runtime_s=3600, resumable=True, kind="train", matched=None
    )
    assert not AS_GIVEN


def test_the_first_rule_that_matches_counts() -> None:
    first, second = MappingRule(account=("ee*",), to="org/a"), MappingRule(account=("*",), to="org/b")
    rules = mapped(first, second)
    assert rules.meaning(Foreign("philly/ee9e8c"), 0) == Meaning("org/a", matched=Matched(7, 1))
    assert rules.meaning(Foreign("philly/0e4a51"), 0) == Meaning("org/b", matched=Matched(7, 2))
    assert rules


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        ("philly/ee9e8c", "unmapped/ee9e8c"),
        ("org/vision", "unmapped/org/vision"),
        ("Some Team/Ünder", "unmapped/some%20team/%C3%BCnder"),
        ("unmapped/unknown", "unmapped/unknown"),
        ("/", "unmapped/%2F"),
    ],
)
def test_what_no_rule_matches_has_an_account_that_everybody_sees(account: str, expected: str) -> None:
    rules = mapped(MappingRule(account=("no such",), to="org/a"))
    assert rules.meaning(Foreign(account), 0) == Meaning(expected)


@pytest.mark.parametrize("name", ["ee9e8c", "philly/ee9e8c", "EE9E8C", "ee*", "ee9e8[a-c]", "?e9e8c"])
def test_an_account_may_be_named_with_or_without_the_cluster_and_as_the_source_spells_it(name: str) -> None:
    foreign = Foreign("philly/ee9e8c", labels=(("account", "EE9E8C"),))
    assert mapped(MappingRule(account=(name,), to="org/a")).meaning(foreign, 0).account == "org/a"


def test_a_run_under_another_account_is_not_known_by_the_name_of_the_first() -> None:
    foreign = Foreign("philly/ee9e8c", labels=(("account", "EE9E8C"), ("qos", "x"))).under("philly/other")
    assert foreign == Foreign("philly/other", labels=(("qos", "x"),))


def test_every_condition_must_hold_and_one_name_of_each() -> None:
    rule = MappingRule(
        cluster=("phil*",),
        account=("x", "ee9e8c"),
        labels={"partition": ("debug", "int*"), "qos": ("high",)},
        to="org/a",
    )
    assert payer(rule, partition="interactive", qos="high") == "org/a"
    assert payer(rule, partition="batch", qos="high") == "unmapped/ee9e8c"
    assert payer(rule, partition="debug") == "unmapped/ee9e8c"
    assert payer(rule, "philly/other", partition="debug", qos="high") == "unmapped/other"


def test_a_cluster_that_no_rule_is_about_keeps_its_accounts() -> None:
    rules = mapped(MappingRule(cluster=("alex",), to="org/a"))
    assert not rules
    assert rules.meaning(Foreign("philly/x"), 0) == Meaning("philly/x")


def test_a_rule_without_an_account_keeps_the_one_that_the_source_gave() -> None:
    rule = MappingRule(labels={"partition": ("debug",)}, minimum_runtime_s=600, resumable=False, kind="debug")
    found = mapped(rule).meaning(Foreign("philly/x", labels=(("partition", "debug"),)), 0)
    assert found == Meaning(
        "philly/x", minimum_runtime_s=600, resumable=False, kind="debug", matched=Matched(7, 1)
    )


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("org/{account}", "org/ee9e8c"),
        ("{cluster}-teams/{account}", "philly-teams/ee9e8c"),
        ("org/{partition}/{qos}", "org/big%20gpu/high"),
        ("org/p-{partition}", "org/p-big%20gpu"),
        ("org/{namespace}", "unmapped/ee9e8c"),
        ("org/{account.2}", "unmapped/ee9e8c"),
    ],
)
def test_parts_of_the_foreign_name_stand_in_the_account(to: str, expected: str) -> None:
    """A rule that asks for a part that is not there does not match: nothing is guessed."""
    assert payer(MappingRule(to=to), partition="Big GPU", qos="high") == expected


def test_a_name_of_several_parts_may_be_taken_apart() -> None:
    assert payer(MappingRule(to="lab/{account.2}/{account.1}"), "org/vision") == "lab/vision/org"
    assert payer(MappingRule(to="lab/{account}"), "org/vision") == "lab/org/vision"


def test_an_account_with_too_long_a_path_is_none() -> None:
    assert payer(MappingRule(to="org/{namespace}"), namespace="x" * 1020) == "org/" + "x" * 1020
    assert payer(MappingRule(to="org/{namespace}"), namespace="x" * 1021) == "unmapped/ee9e8c"


def test_a_person_is_matched_by_a_token() -> None:
    rules = mapped(MappingRule(user=("u-1", "u-2"), to="org/a"))
    assert rules.meaning(Foreign("philly/x", frozenset({"u-2"})), 0).account == "org/a"
    assert rules.meaning(Foreign("philly/x", frozenset({"u-3"})), 0).account == "unmapped/x"
    assert rules.meaning(Foreign("philly/x"), 0).account == "unmapped/x"


def test_a_version_holds_for_what_is_submitted_from_its_moment_on() -> None:
    rules = Rules(
        [Version(100, 9, [MappingRule(to="org/b")]), Version(10, 8, [MappingRule(to="org/a")])], "philly"
    )
    found = [rules.meaning(Foreign("philly/x"), at_s).account for at_s in (0, 10, 99, 100, 10**9)]
    assert found == ["org/a", "org/a", "org/a", "org/b", "org/b"]


def test_a_version_moves_nothing_of_before_its_moment_that_had_an_owner() -> None:
    """Not even of before all versions, which the one reads that was set first."""
    first = Version(100, 8, [MappingRule(account=("a",), to="org/a")])
    earlier = Version(10, 9, [MappingRule(account=("a", "b"), to="org/b")])
    rules = Rules([first, earlier], "philly")
    assert [rules.meaning(Foreign("philly/a"), at_s).account for at_s in (0, 10, 100)] == [
        "org/a",
        "org/b",
        "org/a",
    ]
    assert [rules.meaning(Foreign("philly/b"), at_s).account for at_s in (0, 10, 100)] == ["org/b"] * 3


def test_of_one_moment_the_version_that_was_set_last_counts() -> None:
    rules = Rules(
        [Version(10, 9, [MappingRule(to="org/b")]), Version(10, 8, [MappingRule(to="org/a")])], "philly"
    )
    assert rules.meaning(Foreign("philly/x"), 10) == Meaning("org/b", matched=Matched(9, 1))


def test_what_had_no_owner_is_decided_by_the_next_version_that_has_a_rule_for_it() -> None:
    old, new = MappingRule(account=("a",), to="org/a"), MappingRule(account=("b",), to="org/b")
    rules = Rules([Version(10, 8, [old]), Version(100, 9, [new])], "philly")
    assert rules.meaning(Foreign("philly/b"), 10) == Meaning("org/b", matched=Matched(9, 1))
    assert rules.meaning(Foreign("philly/a"), 10).account == "org/a"
    assert rules.meaning(Foreign("philly/a"), 100).account == "unmapped/a", "no rule of today is about it"


def test_a_version_that_is_about_other_clusters_says_nothing() -> None:
    other, mine = MappingRule(cluster=("alex",), to="org/a"), MappingRule(cluster=("philly",), to="org/p")
    rules = Rules([Version(10, 8, [other]), Version(100, 9, [mine]), Version(200, 10, [other])], "philly")
    found = [rules.meaning(Foreign("philly/x"), at_s).account for at_s in (0, 10, 100, 200)]
    assert found == ["org/p", "org/p", "org/p", "philly/x"]


def test_a_version_without_rules_leaves_its_time_as_the_source_says_it() -> None:
    rules = Rules([Version(0, 8, ()), Version(100, 9, [CATCH_ALL])], "philly")
    assert rules.meaning(Foreign("philly/x"), 50).account == "philly/x"
    assert rules.meaning(Foreign("philly/x"), 100).account == "org/rest"


@pytest.mark.parametrize(
    ("rule", "asked_s", "minimum_s"),
    [
        (MappingRule(), None, 3600),
        (MappingRule(), 60, 60),
        (MappingRule(), 0, 0),
        (MappingRule(minimum_runtime_s=600), None, 600),
        (MappingRule(minimum_runtime_s=600), 60, 60),
        (MappingRule(minimum_runtime_s=0), None, 0),
        (MappingRule(minimum_runtime_s=0), 60, 60),
        (MappingRule(klass="allocated"), 0, 0),
        (MappingRule(klass="unallocated"), None, 0),
        (MappingRule(klass="unallocated"), 60, 0),
    ],
)
def test_what_a_workload_declares_goes_before_the_rule_except_its_class(
    rule: MappingRule, asked_s: int | None, minimum_s: int
) -> None:
    assert mapped(rule).meaning(Foreign("philly/x"), 0).minimum_s(asked_s) == minimum_s


def test_the_submission_that_counts_is_understood() -> None:
    rules = mapped(MappingRule(labels={"qos": ("high",)}, to="org/a", minimum_runtime_s=600), CATCH_ALL)
    low, high = submitted(labels={"qos": "low"}), submitted(5, labels={"qos": "high", "partition": "x"})
    for candidates in ([low, high], [high, low]):
        found = rules.understood(candidates)
        assert found is not None
        assert (found.at_s, found.meaning.account, found.minimum_runtime_s) == (5, "org/a", 600)
        assert found.foreign == Foreign(
            "philly/ee9e8c", frozenset({"u-1"}), (("partition", "x"), ("qos", "high"))
        )
    assert rules.understood([]) is None


def test_submissions_that_differ_by_their_person_alone_match_rules_about_either() -> None:
    """Which of them counts depends on random keys, and must not decide what an amount depends on."""
    rules = mapped(MappingRule(user=("u-2",), to="org/a"))
    for digests in ((b"1", b"2"), (b"2", b"1")):
        pair = [submitted(user=f"u-{n}", digest=digest) for n, digest in enumerate(digests, 1)]
        found = rules.understood(pair)
        assert found is not None
        assert found.meaning.account == "org/a"
    later = rules.understood([submitted(user="u-2"), submitted(9, user="u-1")])
    assert later is not None
    assert later.meaning.account == "unmapped/ee9e8c"


def test_labels_that_no_rule_looks_at_are_not_remembered() -> None:
    rules = mapped(MappingRule(labels={"qos": ("high",)}, to="org/{partition}"), CATCH_ALL)
    for number in range(1000):
        labels = (("job", f"run-{number}"), ("partition", "a"), ("qos", "high"))
        assert rules.meaning(Foreign("philly/x", labels=labels), 0).account == "org/a"
    assert len(rules._known) == 1


def test_a_hostile_glob_takes_no_longer_than_a_plain_one() -> None:
    """A pattern that a backtracking matcher would chew on for years, on the longest name there is."""
    rules = mapped(MappingRule(account=("*a" * 200 + "b",), to="org/a"))
    began = time.perf_counter()
    assert rules.meaning(Foreign("philly/" + "a" * 1000), 0).account.startswith("unmapped/")
    assert time.perf_counter() - began < 5
