"""Account paths: how foreign names become parts, and which paths are well formed."""

import pytest

from gpuledger.kernel.accounts import (
    check_path,
    clash_suffix,
    escape_part,
    is_within,
    join,
    lineage,
    own_path,
    owner_of,
    parent,
    parting,
    share_unless_set,
)
from gpuledger.kernel.errors import Refused


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("ee9e8c", "ee9e8c"),
        ("Proj016", "proj016"),
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("Größe", "gr%C3%B6%C3%9Fe"),
        ("two words", "two%20words"),
        ("..", ".."),
    ],
)
def test_a_foreign_name_becomes_one_part_of_a_path(name: str, part: str) -> None:
    assert escape_part(name) == part
    assert check_path(join("root", part)) == f"root/{part}"


def test_a_team_without_a_name_is_refused_with_a_way_out() -> None:
    with pytest.raises(Refused) as refused:
        escape_part("")
    assert "map it" in refused.value.hint


def test_names_that_differ_by_case_get_suffixes_that_differ_and_stay() -> None:
    assert clash_suffix("Team") != clash_suffix("team")
    assert clash_suffix("Team") == "~5985039f"


def test_the_lineage_goes_from_the_root_down_to_the_path() -> None:
    assert list(lineage("org/vision/seg")) == ["org", "org/vision", "org/vision/seg"]


@pytest.mark.parametrize(("path", "above"), [("org/vision/seg", "org/vision"), ("org", None)])
def test_the_parent_is_one_part_shorter(path: str, above: str | None) -> None:
    assert parent(path) == above


@pytest.mark.parametrize(
    ("path", "owner", "share"), [("org", "org", 1), ("org/~own", "org", 0), ("org/~own/x", "org/~own/x", 1)]
)
def test_the_child_own_is_its_parents_and_has_no_share_unless_set(path: str, owner: str, share: int) -> None:
    assert (owner_of(path), share_unless_set(path)) == (owner, share)
    assert owner_of(own_path(owner)) == owner


@pytest.mark.parametrize(
    ("path", "other", "expected"),
    [
        ("org/a/x", "org/b", ("org/a", "org/b")),
        ("org/a/x", "org/a/y", ("org/a/x", "org/a/y")),
        ("org/a", "lab/a", ("org", "lab")),
    ],
)
def test_two_leaves_part_at_siblings(path: str, other: str, expected: tuple[str, str]) -> None:
    assert parting(path, other) == expected
    assert parting(other, path) == expected[::-1]


@pytest.mark.parametrize("path", ["org", "org/vision", "org/~own", "a.b/c-d_e", "a%20b/c%C3%B6"])
def test_a_well_formed_path_is_returned_as_it_is(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize("path", ["", "/", "org/", "/org", "org//x", "Org", "org/a b", "org/ö", "org/a%20B"])
def test_a_path_with_an_empty_part_or_a_foreign_character_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="not well formed"):
        check_path(path)


def test_what_is_within_an_account_is_told_by_whole_parts() -> None:
    assert is_within("org/vision", "org/vision")
    assert is_within("org/vision/video", "org/vision")
    assert not is_within("org/visionary", "org/vision")
    assert not is_within("org", "org/vision")
