"""Plain HTML tables: read by screen readers, printed, and scrolled sideways on a phone. Pure."""

import html
from collections.abc import Mapping, Sequence

_FRAME = "overflow:auto;max-height:{height};"
_TABLE = "border-collapse:collapse;width:100%;font-size:0.9rem;font-variant-numeric:tabular-nums;"
_CELL = "padding:0.35rem 0.75rem 0.35rem 0;border-bottom:1px solid rgba(128,140,150,0.35);white-space:nowrap;"
_TEXT = _CELL + "text-align:left;"
_NUMBER = _CELL + "text-align:right;padding-left:0.5rem;"
_BROKEN = "white-space:normal;min-width:16rem;overflow-wrap:anywhere;"
_CAPTION = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);"
TALL = "18rem"


def table(
    rows: Sequence[Mapping[str, str]], *, caption: str, height: str = "none", texts: bool = False
) -> str:
    """Return a table; the first column names the row, the others are aligned as numbers, or are texts.

    Args:
        rows: Cells by column; all rows have the same columns.
        caption: What the table shows, for those who cannot see it.
        height: CSS height beyond which it scrolls inside its frame.
        texts: Whether the other columns are texts; the last one breaks its lines.
    """
    columns = list(rows[0]) if rows else []
    head = "".join(
        f'<th scope="col" style="{_style(n, texts=texts)}font-weight:600;">{html.escape(name)}</th>'
        for n, name in enumerate(columns)
    )
    body = "".join(f"<tr>{_row(row, columns, texts=texts)}</tr>" for row in rows)
    label = html.escape(caption, quote=True)
    # A frame that scrolls must be reachable by keyboard.
    return (
        f'<div role="region" tabindex="0" aria-label="{label}" style="{_FRAME.format(height=height)}">'
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{label}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Mapping[str, str], columns: Sequence[str], *, texts: bool) -> str:
    first, *rest = columns
    cells = [f'<th scope="row" style="{_TEXT}font-weight:400;">{html.escape(row[first])}</th>']
    for number, name in enumerate(rest, 1):
        style = _style(number, texts=texts) + (_BROKEN if texts and name == columns[-1] else "")
        cells.append(f'<td style="{style}">{html.escape(row[name])}</td>')
    return "".join(cells)


def _style(column: int, *, texts: bool) -> str:
    return _NUMBER if column and not texts else _TEXT
