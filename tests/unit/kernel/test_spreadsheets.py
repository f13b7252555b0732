"""What a spreadsheet would run is text."""

import pytest

from gpuledger.kernel.spreadsheets import harmless


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_what_begins_like_a_formula_is_quoted_and_nothing_else(start: str) -> None:
    formula = f"{start}cmd|' /C calc'!A0"
    assert harmless(formula) == f"'{formula}"
    assert harmless(f"a{formula}") == f"a{formula}"
    assert harmless("") == ""
