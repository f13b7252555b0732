"""A statement on paper: A4, landscape. The one module that knows the PDF library.

The same statement gives the same bytes: the library is told to write neither the time nor anything random.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import CondPageBreak, KeepTogether, Paragraph, SimpleDocTemplate, Spacer
from reportlab.platypus import Table as Grid

from gpuledger.close.document import Document
from gpuledger.close.presenting import Statement, Table, present

MARGIN = 14 * mm
WIDTH = landscape(A4)[0] - 2 * MARGIN
_LINE, _SOFT, _BELOW = colors.HexColor("#bbbbbb"), colors.HexColor("#f1f1f1"), "#b3261e"
_TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=16, leading=20, spaceAfter=8)
_HEADING = ParagraphStyle(
    "heading",
    fontName="Helvetica-Bold",
    fontSize=11,
    leading=14,
    spaceBefore=12,
    spaceAfter=3,
)
_PLAIN = ParagraphStyle("plain", fontName="Helvetica", fontSize=8, leading=10.5, splitLongWords=True)
_NUMBER = ParagraphStyle("number", parent=_PLAIN, alignment=2)
_STRONG = ParagraphStyle("strong", parent=_PLAIN, fontName="Helvetica-Bold")
_STRONG_NUMBER = ParagraphStyle("strong number", parent=_STRONG, alignment=2)
_FIGURE = ParagraphStyle("figure", parent=_PLAIN, fontName="Helvetica-Bold", fontSize=13, leading=16)


def statement(document: Document) -> bytes:
    """Return the PDF."""
    told = present(document)
    out = BytesIO()
    printed = SimpleDocTemplate(
        out, pagesize=landscape(A4), leftMargin=MARGIN, rightMargin=MARGIN, topMargin=MARGIN,
        bottomMargin=MARGIN + 4 * mm, title=told.title, author="gpuledger", subject=told.foot, lang="en", invariant=1,
    )  # fmt: skip

    def foot(canvas: Any, page: Any) -> None:  # noqa: ANN401 - the library's own, which has no types
        canvas.setFont("Helvetica", 7)
        canvas.drawString(MARGIN, MARGIN - 2 * mm, _latin(told.foot))
        canvas.drawRightString(MARGIN + WIDTH, MARGIN - 2 * mm, f"page {page.page}")

    printed.build(_story(told), onFirstPage=foot, onLaterPages=foot)
    return out.getvalue()


def _story(told: Statement) -> list[Any]:
    story: list[Any] = [_text(told.title, _TITLE), _headline(told), Spacer(1, 4 * mm), _facts(told)]
    for table in told.tables:
        heading, note = _text(table.title, _HEADING), [_text(table.note, _PLAIN)] if table.note else []
        if not table.rows:
            story.append(KeepTogether([heading, *note]))
            continue
        # A heading stands over some rows of its table, or on the next page with them.
        story += [CondPageBreak(32 * mm), heading, _grid(table), Spacer(1, 1.5 * mm), *note]
    return story


def _headline(told: Statement) -> Grid:
    cells = [
        [_text(f"{name}, GPU-hours", _PLAIN) for name, _ in told.headline],
        [_text(value, _FIGURE) for _, value in told.headline],
    ]
    grid = Grid(cells, colWidths=[WIDTH / len(told.headline)] * len(told.headline))
    grid.setStyle([("BACKGROUND", (0, 0), (-1, -1), _SOFT), ("LEFTPADDING", (0, 0), (-1, -1), 8)])
    return grid


def _facts(told: Statement) -> Grid:
    rows = [[_text(name, _STRONG), _text(value, _PLAIN)] for name, value in told.facts]
    grid = Grid(rows, colWidths=[WIDTH * 0.14, WIDTH * 0.86])
    grid.setStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), *_tight(1)])
    return grid


def _grid(table: Table) -> Grid:
    rows = [_row(table, table.columns, _STRONG, _STRONG_NUMBER)]
    rows += [_row(table, row, _PLAIN, _NUMBER) for row in table.rows]
    if table.total:
        rows.append(_row(table, table.total, _STRONG, _STRONG_NUMBER))
    # The heading stands on every page that the table goes on to.
    grid = Grid(rows, colWidths=_widths(table), repeatRows=1)
    grid.setStyle(
        [("LINEBELOW", (0, 0), (-1, -1), 0.4, _LINE), ("BACKGROUND", (0, 0), (-1, 0), _SOFT),
         ("VALIGN", (0, 0), (-1, -1), "TOP"), *_tight(2)]
    )  # fmt: skip
    return grid


def _row(table: Table, cells: Sequence[str], text: ParagraphStyle, number: ParagraphStyle) -> list[Paragraph]:
    return [_text(cell, text if at < len(table.texts) else number) for at, cell in enumerate(cells)]


def _widths(table: Table) -> list[float]:
    texts, numbers = table.texts, len(table.columns) - len(table.texts)
    shares = [*texts, *([(100 - sum(texts)) / numbers] * numbers if numbers else ())]
    return [WIDTH * share / 100 for share in shares]


def _tight(points: int) -> list[tuple[Any, ...]]:
    return [("TOPPADDING", (0, 0), (-1, -1), points), ("BOTTOMPADDING", (0, 0), (-1, -1), points)]


def _text(text: str, style: ParagraphStyle) -> Paragraph:
    told = escape(_latin(text))
    if text.startswith("-") and style.alignment == _NUMBER.alignment:
        told = f'<font color="{_BELOW}">{told}</font>'
    return Paragraph(told, style)


def _latin(text: str) -> str:
    """Return a text in the letters that every reader's own fonts have; a name in others is shown with ``?``."""
    return text.encode("cp1252", "replace").decode("cp1252")
