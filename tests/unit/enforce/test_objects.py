"""Objects of Kubernetes: whose they are, and how they are changed."""

import pytest
from tests.unit.enforce.kubes import meta, patched, queue

from gpuledger.enforce.objects import (
    accounts,
    field_of,
    managed,
    patch,
    pointer,
    quantity,
    quantity_milli,
    same_duration,
    same_quantity,
    setting,
)


def test_only_what_carries_the_mark_or_is_listed_may_be_changed() -> None:
    marked, listed, other = queue("a", None, "org/a"), queue("team-b", None), queue("c", None)
    off = queue("d", None)
    off["metadata"]["labels"] = {"gpuledger/enforce": "false"}
    found = managed([marked, listed, other, off], ["team-*"])
    assert [one["metadata"]["name"] for one in found] == ["a", "team-b"]


def test_the_configuration_goes_before_the_annotation() -> None:
    objects = [queue("a", None, "org/a"), queue("b", None, "org/b"), queue("c", None)]
    named = accounts(objects, ["org/a", "org/b", "org/x"], {"b": "org/x"}, None)
    assert dict(named.paths) == {"a": "org/a", "b": "org/x"}
    assert len(named.notes) == 1


def test_a_patch_tests_that_the_object_is_the_one_that_was_seen() -> None:
    one = {"kind": "Workload", "metadata": {**meta("w"), "namespace": "team"}, "spec": {}}
    change = patch(one, "Workload", *setting(one, ("spec", "active"), value=False))
    assert (change.kind, change.namespace, change.name) == ("Workload", "team", "w")
    assert patched(one, [dict(op) for op in change.operations]) == {**one, "spec": {"active": False}}
    assert patched({**one, "metadata": {"uid": "another"}}, [dict(op) for op in change.operations]) is None


def test_what_lies_on_the_way_to_a_field_is_made_and_what_is_there_stays() -> None:
    one = {"metadata": meta("a"), "spec": {"x": {"kept": 1}}}
    operations = [dict(op) for op in setting(one, ("spec", "x", "y", "z"), "1")]
    assert patched(one, operations) == {**one, "spec": {"x": {"kept": 1, "y": {"z": "1"}}}}
    assert field_of(one, "spec", "x", "nothing", "deeper") is None


def test_pointers_escape_what_separates_their_parts() -> None:
    assert pointer("metadata", "annotations", "gpuledger/left", 0, "a~b") == (
        "/metadata/annotations/gpuledger~1left/0/a~0b"
    )


@pytest.mark.parametrize(
    ("written", "amount"),
    [("8", 8000), (8, 8000), ("1500m", 1500), ("2k", 2_000_000), ("0.5", 500), ("x", None), (None, None)],
)
def test_quantities_are_read_exactly(written: object, amount: int | None) -> None:
    assert quantity_milli(written) == amount


def test_a_quantity_written_in_another_way_is_the_same() -> None:
    assert (quantity(16_000_000), quantity(1500)) == ("16000", "1500m")
    assert same_quantity("16k", "16000") == "16000"
    assert same_quantity("15", "16000") == "15"
    assert same_quantity(None, "1") is None


@pytest.mark.parametrize(
    ("written", "same"),
    [("1h0m0s", True), ("60m", True), ("3600s", True), ("59m60s", True), ("1.5h", False), ("1h", True)],
)
def test_a_duration_written_in_another_way_is_the_same(written: str, same: object) -> None:
    assert (same_duration(written, "3600s") == "3600s") is same
    assert same_duration(None, "3600s") is None
