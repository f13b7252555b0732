"""What groups mean is read strictly, and the first that fits counts."""

from pathlib import Path

import pytest

from gpuledger.identity.caller import Scope
from gpuledger.identity.groups import Groups
from gpuledger.identity.roles import Role
from gpuledger.ingest.yaml_file import read_yaml
from gpuledger.kernel.errors import Refused

FILE = """
claim: roles
groups:
  gpu-admins: {role: admin}
  vision: {role: lead, subtree: institute/vision}
  slurm: {role: scheduler, clusters: [b, a, b]}
"""


def read(tmp_path: Path, text: str) -> Groups:
    path = tmp_path / "groups.yaml"
    path.write_text(text)
    return read_yaml(path, Groups, "docs/api.md")


def test_the_first_group_of_the_file_counts(tmp_path: Path) -> None:
    found = read(tmp_path, FILE)
    both = found.meaning({"roles": ["vision", "gpu-admins"]})
    assert both is not None
    assert (both.role, both.scope) == (Role.ADMIN, Scope())
    one = found.meaning({"roles": "slurm"})
    assert one is not None
    assert one.scope == Scope(None, ("a", "b"))


@pytest.mark.parametrize(
    "claims",
    [{}, {"groups": ["vision"]}, {"roles": []}, {"roles": [1]}, {"roles": {"vision": 1}}, {"roles": None}],
)
def test_who_is_in_no_group_means_nothing(tmp_path: Path, claims: dict[str, object]) -> None:
    assert read(tmp_path, FILE).meaning(claims) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "groups: Field required"),
        ("[]", "file: "),
        ("groups: {}", "groups"),
        ("groups: {a: {role: boss}}", "role"),
        ("groups: {a: {role: admin, root: true}}", "root"),
        ("groups: {a: {role: lead}}", "groups.a: .*needs a subtree; --subtree ACCOUNT"),
        ("groups: {a: {role: scheduler}}", "cluster"),
        ("groups: {a: {role: lead, subtree: a//b}}", "groups.a: .*not well formed"),
        ("groups: {a: {role: viewer}, a: {role: admin}}", "'a' stands twice"),
        ("groups: [a", "is not YAML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        read(tmp_path, text)
