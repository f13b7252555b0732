"""Foreign names against paths of ours: nothing is guessed."""

from gpuledger.enforce.names import Reading, resolve
from gpuledger.events.mapping import MappingRule
from gpuledger.ledger.mapping import Rules, Version

AS_GIVEN = Reading(Rules(), "alpha", 0)


def mapped(*rules: MappingRule) -> Reading:
    return Reading(Rules([Version(0, 1, list(rules))], "alpha"), "alpha", 0)


def test_without_rules_an_account_is_the_one_below_its_cluster() -> None:
    named = resolve(["proj-A", "b"], ["alpha/proj-a", "alpha/b"], AS_GIVEN, given={}, managed=["*"])
    assert (dict(named.paths), list(named.notes)) == ({"proj-A": "alpha/proj-a", "b": "alpha/b"}, [])
    assert (named.foreign("alpha/b"), named.foreign("alpha/c")) == ("b", None)


def test_rules_say_what_a_name_means_and_what_is_written_down_goes_before() -> None:
    rules = mapped(MappingRule(account=["proj-*"], to="org/{account}"))
    named = resolve(["proj-a", "prog"], ["org/proj-a", "org"], rules, given={"prog": "org"}, managed=["*"])
    assert dict(named.paths) == {"proj-a": "org/proj-a", "prog": "org"}


def test_only_names_that_are_listed_may_be_changed() -> None:
    named = resolve(["a", "b"], ["alpha/a", "alpha/b"], AS_GIVEN, given={}, managed=["a"])
    assert dict(named.paths) == {"a": "alpha/a"}
    assert dict(resolve(["a"], ["alpha/a"], AS_GIVEN, given={}, managed=[]).paths) == {}


def test_a_name_that_leads_nowhere_is_told_and_left_alone() -> None:
    rules = mapped(MappingRule(account=["proj-*"], to="org/{account}"))
    named = resolve(["x", "proj-z"], ["org/proj-a"], rules, given={}, managed=["*"])
    assert dict(named.paths) == {}
    assert list(named.notes) == [
        "proj-z, x: no account of the cycle is known by that name, so nothing is changed"
    ]


def test_two_names_of_one_account_are_told_and_left_alone() -> None:
    rules = mapped(MappingRule(account=["v*"], to="org/vision"))
    named = resolve(["v1", "v2", "w"], ["org/vision", "org/w"], rules, given={"w": "org/w"}, managed=["*"])
    assert dict(named.paths) == {"w": "org/w"}
    assert named.notes[0].startswith("v1, v2 all stand for org/vision: none of them is changed")


def test_where_the_mapping_says_nothing_of_such_names_only_what_is_written_counts() -> None:
    named = resolve(["a", "b"], ["a", "org/b"], None, given={"b": "org/b"}, managed=["*"])
    assert dict(named.paths) == {"b": "org/b"}
