"""Whatever a person is called: a value that names them is found."""

import json

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from gpuledger.ledger.quotations import Mention

characters = st.characters(exclude_categories=["Cs"])
names = st.text(characters, min_size=1, max_size=12)
around = st.text(characters, max_size=8)


@given(name=names, before=around, after=around)
@example(name="\\", before="", after="")
@example(name="\\u0041", before="\\", after="")
@example(name='"', before="", after="\n")
def test_a_name_between_spaces_is_found_in_every_form(name: str, before: str, after: str) -> None:
    mention, text = Mention(name), f"{before} {name} {after}"
    values = [
        text.encode(),
        msgspec.json.encode({"user": text}),
        *(json.dumps({"user": text}, ensure_ascii=escaped).encode() for escaped in (True, False)),
    ]
    for value in values:
        assert mention.occurs_in(value)
        assert mention.part in value, "the database would not have looked at it"


@given(name=names)
def test_a_name_that_is_the_whole_value_is_found(name: str) -> None:
    for value in (name.encode(), json.dumps(name).encode(), msgspec.json.encode({"data": {"user": name}})):
        assert Mention(name).occurs_in(value)


@given(name=names, value=st.binary(max_size=60))
def test_any_bytes_can_be_looked_at(name: str, value: bytes) -> None:
    assert Mention(name).occurs_in(value) in (True, False)
