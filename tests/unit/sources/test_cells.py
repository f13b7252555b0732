"""One row: its fields, or why they cannot be told apart."""

import pytest

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.cells import cells_of, row_values, text_of, without_return

HEADER = ("id", "user")


@pytest.mark.parametrize(
    ("raw", "user"),
    [(b"1,a", "a"), (b"1,", ""), (b'1,"a,b"', "a,b"), ("1,ü".encode(), "ü"), (b'1,"a""b"', 'a"b')],
)
def test_a_row_by_column(raw: bytes, user: str) -> None:
    assert row_values(HEADER, raw) == {"id": "1", "user": user}


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"1", "wrong-columns"),
        (b"1,a,b", "wrong-columns"),
        (b'1,"a"b', "bad-csv"),
        (b"1,\0", "nul-byte"),
        (b"1,\xff", "not-utf8"),
    ],
)
def test_a_row_that_cannot_be_split(raw: bytes, code: str) -> None:
    with pytest.raises(BadRecord) as caught:
        row_values(HEADER, raw)
    assert caught.value.code == code


def test_parts_of_it() -> None:
    assert text_of("ü".encode()) == "ü"
    assert cells_of("") == []
    assert (without_return(b"a\r"), without_return(b"a\rb")) == (b"a", b"a\rb")
