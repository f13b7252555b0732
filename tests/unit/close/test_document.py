"""The canonical form: one text for one meaning, whole numbers, sorted keys, nothing left out."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.close.close_said import W_HOUR, document, line

from gpuledger.close.document import Document, decode, digest, encode
from gpuledger.kernel.errors import Refused

SAID = encode(document())


def test_it_reads_back_as_it_was() -> None:
    assert decode(SAID, "here") == document()


def test_its_keys_are_sorted_and_nothing_stands_between_them() -> None:
    plain = json.loads(SAID)
    again = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert again.encode() + b"\n" == SAID
    assert set(plain) == set(Document.__struct_fields__)
    assert plain["supersedes"] is None, "what there is none of is said"


def test_it_holds_whole_numbers_and_texts_alone() -> None:
    def kinds(value: object) -> set[type]:
        if isinstance(value, dict):
            return set().union(*map(kinds, value.values()))
        if isinstance(value, list):
            return set().union(*map(kinds, value))
        return {type(value)}

    assert kinds(json.loads(SAID)) <= {int, str, bool, type(None)}


@given(st.permutations(["org/a", "org/b", "org/c"]))
def test_what_it_says_of_an_account_is_told_by_name_and_place(names: list[str]) -> None:
    told = document(*map(line, names))
    assert [each["account"] for each in json.loads(encode(told))["accounts"]] == names
    assert (encode(told) == encode(document(*map(line, sorted(names))))) == (names == sorted(names))


def test_a_digest_is_of_every_byte() -> None:
    digests = {digest(SAID[:at] + bytes([SAID[at] ^ 1]) + SAID[at + 1 :]) for at in range(len(SAID))}
    assert len(digests) == len(SAID)
    assert digest(SAID) not in digests


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", SAID.replace(b'"version":1', b'"version":1.5'),
     SAID.replace(b'"version"', b'"other"'), b'{"unknown":1,' + SAID[1:]],
)  # fmt: skip
def test_what_is_none_is_refused_with_its_place(content: bytes) -> None:
    with pytest.raises(Refused, match=r"v1/close\.json is no file of a close"):
        decode(content, "v1/close.json")


def test_an_amount_beyond_what_a_float_holds_stays_whole() -> None:
    amount = 2**62 + 1
    told = document(
        msgspec.structs.replace(
            line("org/a"), weighted=msgspec.structs.replace(line("org/a").weighted, granted=amount)
        )
    )
    assert decode(encode(told), "here").accounts[0].weighted.granted == amount


def test_amounts_of_a_line_say_their_unit_and_are_all_there() -> None:
    said = line("org/a", 5, 7, -2).amounts()
    assert (said["granted_gpu_ms_weighted"], said["charged_gpu_ms_weighted"]) == (5 * W_HOUR, 7 * W_HOUR)
    assert said["expired_gpu_ms_weighted"] == -2 * W_HOUR
    assert len(said) == 12
    assert all(name.endswith(("_gpu_ms_weighted", "_gpu_ms")) for name in said)
