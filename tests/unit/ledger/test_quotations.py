"""A name is found as a word, however the value writes it, and not inside another word."""

import json

import pytest

from gpuledger.ledger.quotations import Mention

FOUND = {
    "a JSON string": ("ada", b'{"user":"ada"}'),
    "a cell of a row": ("ada", b"17,ada,8\r\n"),
    "the end of a broken row": ("ada", b'17,"ada'),
    "a path": ("ada", b"/data/ada/train.py"),
    "an address": ("ada", b"ada@example.org"),
    "two words": ("Ada Lovelace", b"by Ada Lovelace, yesterday"),
    "UTF-8": ("zoë", "user=zoë;".encode()),
    "Latin-1": ("zoë", "user=zoë;".encode("latin-1")),
    "UTF-8 beside garbage": ("zoë", b"\xff\x00 zo\xc3\xab"),
    "quotation marks": ("zoë", "«zoë»".encode()),
    "escapes of JSON": ("zoë", json.dumps({"user": "zoë"}).encode()),
    "escapes in upper case": ("zoë", rb'"zo\u00EB"'),
    "a pair of surrogates": ("a😀b", json.dumps("a😀b").encode()),
    "half a pair of surrogates before it": ("ada", rb'"\ud83d ada"'),
    "a quotation mark": ('O"Brien', json.dumps('O"Brien').encode()),
    "after an escaped line end": ("ada", rb'"line\nada ran"'),
    "after an escaped backslash": ("nada", rb'"\\nada"'),
    "no letter at all": ("李", "user 李".encode()),
    "odd ends": ("@ada@", b"x@ada@x"),
    "NUL around it": ("ada", b"\x00ada\x00"),
}
NOT_FOUND = {
    "a longer word": ("ada", b"adamant canada"),
    "a longer word with an accent": ("zo", "zoë".encode()),
    "another case": ("ada", b"ADA"),
    "a part of a number": ("17", b"1170"),
    "an underscore": ("ada", b"ada_l"),
    "nothing": ("ada", b""),
}


@pytest.mark.parametrize("what", FOUND)
def test_a_name_is_found_as(what: str) -> None:
    name, value = FOUND[what]
    mention = Mention(name)
    assert mention.occurs_in(value)
    assert mention.part in value, "the database would not have looked at it"


@pytest.mark.parametrize("what", NOT_FOUND)
def test_a_name_is_not_found_as(what: str) -> None:
    name, value = NOT_FOUND[what]
    assert not Mention(name).occurs_in(value)
