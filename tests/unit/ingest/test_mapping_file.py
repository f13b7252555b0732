"""The mapping file is read strictly; what it shows of a rule is one line."""

from pathlib import Path

import pytest

from gpuledger.events.mapping import MappingRule
from gpuledger.ingest.mapping_file import read, shown
from gpuledger.kernel.errors import NotFound, Refused

FULL = """
rules:
  - when:
      cluster: philly
      account: [ee9e8c, "7f*"]
      user: ada
      partition: debug
      qos: [high, low]
      queue: q1
      labels: {namespace: "ml-*"}
    account: org/vision/{account}
    class: allocated
    minimum_runtime_s: 600
    resumable: false
    kind: debug
  - {}
"""


def rules_of(tmp_path: Path, content: str) -> list[MappingRule]:
    path = tmp_path / "mapping.yaml"
    path.write_text(content)
    return read(path).as_rules()


def test_every_key_comes_back_as_a_rule(tmp_path: Path) -> None:
    full, catch_all = rules_of(tmp_path, FULL)
    assert full == MappingRule(
        cluster=("philly",),
        account=("ee9e8c", "7f*"),
        user=("ada",),
        labels={"namespace": ("ml-*",), "partition": ("debug",), "qos": ("high", "low"), "queue": ("q1",)},
        to="org/vision/{account}",
        klass="allocated",
        minimum_runtime_s=600,
        resumable=False,
        kind="debug",
    )
    assert catch_all == MappingRule()
    assert rules_of(tmp_path, "rules: []") == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("rules: {}", "rules: Input should be a valid list"),
        ("rules: [{when: {account: []}}]", "rules.0.when.account"),
        ("rules: [{when: {account: 7}}]", "rules.0.when.account"),
        ("rules: [{class: free}]", "rules.0.class"),
        ("rules: [{minimum_runtime_s: 1.5}]", "rules.0.minimum_runtime_s"),
        ("rules: [{minimum_runtime_s: -1}]", "rules.0.minimum_runtime_s"),
        ("rules: [{resumable: perhaps}]", "rules.0.resumable"),
        ("rules: [{kind: batch}]", "rules.0.kind"),
        ("rules: [{}, {class: unallocated, minimum_runtime_s: 60}]", "rules.1: minimum_runtime_s"),
        ("rules: [{when: {user: 'a*'}}]", "rules.0: user: 'a*' is no name"),
        ("rules: [{when: {labels: {qos: x}}}]", "rules.0: labels: qos has a key of its own"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(tmp_path: Path, content: str, expected: str) -> None:
    with pytest.raises(Refused) as refused:
        rules_of(tmp_path, content)
    assert expected in refused.value.message
    assert "docs/mapping-file.md" in refused.value.hint


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read(tmp_path / "none.yaml")


def test_a_rule_is_shown_on_one_line(tmp_path: Path) -> None:
    full, catch_all = rules_of(tmp_path, FULL)
    assert shown(full) == (
        "cluster philly and account ee9e8c|7f* and user ada and namespace ml-* and partition debug"
        " and qos high|low and queue q1 -> org/vision/{account}, allocated, minimum runtime 600 s, not resumable, debug"
    )
    assert shown(catch_all) == "everything -> account as given"
