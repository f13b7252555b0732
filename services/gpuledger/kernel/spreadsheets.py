"""Texts in files that spreadsheets open: what begins like a formula is taken for one, and is run."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: where it begins like one, with an apostrophe in front."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
