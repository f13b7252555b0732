"""Tables that can be read without seeing them."""

from gpuledger_dashboards import tables


def test_rows_and_columns_have_headers_and_the_table_a_caption() -> None:
    text = tables.table([{"Account": "a", "Budget": "1.0"}], caption="Tree of accounts")
    assert '<th scope="col"' in text
    assert '<th scope="row"' in text
    assert "Tree of accounts</caption>" in text
    assert 'tabindex="0"' in text


def test_what_it_shows_is_escaped() -> None:
    text = tables.table([{"Account": "<script>", "B": '"&'}], caption='a "b"')
    assert "<script>" not in text
    assert "&quot;&amp;" in text
    assert 'aria-label="a &quot;b&quot;"' in text


def test_nothing_is_an_empty_table() -> None:
    assert "<tbody></tbody>" in tables.table([], caption="nothing")


def test_a_tall_one_scrolls() -> None:
    assert f"max-height:{tables.TALL}" in tables.table([{"A": "1"}], caption="c", height=tables.TALL)
