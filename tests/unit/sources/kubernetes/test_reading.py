import datetime as dt

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.kubernetes.objects import Condition, ManagedFields, Meta, Pod
from gpuledger.sources.kubernetes.reading import (
    at_s,
    condition,
    created_s,
    decode,
    since_s,
    unwrap,
    written_s,
)

NOON = dt.datetime(2026, 10, 31, 12, tzinfo=dt.UTC)


def test_a_line_of_a_watch_and_a_bare_object_are_the_same_object() -> None:
    bare = b'{"kind": "Pod", "metadata": {}}'
    assert unwrap(bare)[:2] == ("Pod", "ADDED")
    line = b'{"type": "DELETED", "object": ' + bare + b', "observedAt": "2026-10-31T12:00:00Z"}'
    seen = unwrap(line)
    assert (seen.kind, seen.change, bytes(seen.raw), seen.observed_s) == (
        "Pod",
        "DELETED",
        bare,
        int(NOON.timestamp()),
    )
    assert seen.is_gone
    assert seen.is_guess is None


def test_what_vanished_is_gone_and_a_guess() -> None:
    seen = unwrap(b'{"type": "VANISHED", "object": {"kind": "Pod"}}')
    assert (seen.is_gone, seen.is_guess) == (True, True)


def test_a_member_of_a_list_has_the_kind_of_the_list() -> None:
    assert unwrap(b'{"metadata": {}}', "Pod").kind == "Pod"
    with pytest.raises(BadRecord) as refused:
        unwrap(b'{"metadata": {}}')
    assert refused.value.code == "fragment"


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{", b"\xff", b'{"kind": 1}', b'{"type": "ADDED", "object": []}', b"[" * 5000]
)
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRecord) as refused:
        unwrap(raw)
    assert refused.value.code == "not-an-object"


def test_a_field_of_another_form_is_named() -> None:
    with pytest.raises(BadRecord, match=r"\$\.metadata\.creationTimestamp"):
        decode(Pod, b'{"metadata": {"creationTimestamp": "2026-10-31T12:00:00"}, "spec": {}}')


def test_zero_times_stand_for_none() -> None:
    assert at_s(None) is None
    assert at_s(dt.datetime(1, 1, 1, tzinfo=dt.UTC)) is None
    assert at_s(dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) is None
    assert at_s(NOON) == int(NOON.timestamp())
    with pytest.raises(BadRecord, match="1970 to 2100"):
        at_s(dt.datetime(2101, 1, 1, tzinfo=dt.UTC))


def test_conditions_are_found_by_type_and_need_their_time() -> None:
    ready = Condition(type="Ready", status="True", last_transition_time=NOON)
    assert condition([Condition(type="Other"), ready], "Ready") is ready
    assert condition(None, "Ready") is None
    assert since_s(ready, "Ready") == int(NOON.timestamp())
    with pytest.raises(BadRecord, match=r"conditions\[Ready\]"):
        since_s(Condition(type="Ready"), "Ready")


def test_an_object_says_when_it_was_made_and_written() -> None:
    fields = [ManagedFields(), ManagedFields(time=NOON)]
    assert written_s(Meta(managed_fields=fields)) == int(NOON.timestamp())
    assert written_s(Meta()) is None
    with pytest.raises(BadRecord, match="creationTimestamp"):
        created_s(Meta())
