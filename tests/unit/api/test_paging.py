"""Pages cover a list once, in order."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.api.paging import page


@given(st.lists(st.integers()), st.integers(1, 7))
def test_pages_tell_everything_once(rows: list[int], limit: int) -> None:
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        part, after = page(rows, after, limit)
        seen += part
        assert len(part) <= limit
    assert seen == rows


def test_beyond_the_end_there_is_nothing() -> None:
    assert page([1], 5, 2) == ([], None)
