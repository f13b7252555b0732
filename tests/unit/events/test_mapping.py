"""What a rule may say."""

import pytest

from gpuledger.events.mapping import MappingRule, check
from gpuledger.kernel.errors import Refused


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            MappingRule(klass="unallocated", minimum_runtime_s=60),
            "minimum_runtime_s: what runs unallocated has none",
        ),
        (MappingRule(klass="allocated", minimum_runtime_s=0), "minimum_runtime_s: 0 means unallocated"),
        (MappingRule(user=("ad*",)), "user: 'ad*' is no name"),
        (MappingRule(to="org/{user}"), "account: {user} would make a name public"),
        (MappingRule(to="org/{}"), "account: {} stands for nothing"),
        (MappingRule(to="org/{account.0}"), "account: {account.0} stands for nothing"),
        (MappingRule(to="org/{account"), "account: account path 'org/{account' is not well formed"),
        (MappingRule(to="Org"), "account: account path 'Org' is not well formed"),
        (MappingRule(to="org//a"), "account: account path 'org//a' is not well formed"),
        (MappingRule(to="unmapped/a"), "account: unmapped is where that goes which no rule matches"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_its_key(rule: MappingRule, expected: str) -> None:
    with pytest.raises(Refused) as refused:
        check(rule)
    assert refused.value.message.startswith(expected)
    assert refused.value.hint


def test_sound_rules_pass() -> None:
    check(MappingRule(to="org/{account.1}/{namespace}-{qos}", klass="unallocated", minimum_runtime_s=0))
    check(MappingRule(minimum_runtime_s=0))
