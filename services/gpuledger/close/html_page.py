"""A statement as one HTML page that loads nothing, for a screen and for paper. Pure."""

from collections.abc import Sequence
from html import escape
from string import Template

from gpuledger.close.document import Document
from gpuledger.close.presenting import Statement, Table, present

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8885; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .4rem; }
dl.headline { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .6rem;
  margin: 0 0 1.4rem; }
dl.headline div { background: var(--soft); border-radius: .4rem; padding: .6rem .8rem; }
dl.headline dt { font-size: .85rem; }
dl.headline dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; margin: 0; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 40rem; }
th, td { text-align: right; white-space: nowrap; padding: .25rem .7rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; } tbody th { font-weight: 400; } tfoot th, tfoot td { font-weight: 600; border-bottom: 0; }
.text { text-align: left; } .below { color: #b3261e; }
p { max-width: 58rem; margin: .5rem 0; } footer { margin-top: 2.4rem; font-size: .9rem; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { .below { color: #f2b8b5; } }
@media print { @page { size: A4 landscape; margin: 14mm; } body { font-size: 10px; margin: 0; max-width: none; }
  .scroll { overflow: visible; } thead { display: table-header-group; } tr { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<dl class="headline">
$headline
</dl>
<dl class="facts">
$facts
</dl>
$tables
</main>
<footer><p>$foot</p></footer>
</body>
</html>
""")


def page(document: Document) -> bytes:
    """Return the page."""
    return _printed(present(document)).encode()


def _printed(statement: Statement) -> str:
    return _PAGE.substitute(
        title=escape(statement.title),
        headline="\n".join(
            f"<div><dt>{escape(name)}, GPU-hours</dt><dd>{escape(value)}</dd></div>"
            for name, value in statement.headline
        ),
        facts="\n".join(
            f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in statement.facts
        ),
        tables="\n".join(map(_table, statement.tables)),
        foot=escape(statement.foot),
    )


def _table(table: Table) -> str:
    name = escape(table.title)
    note = f"\n<p>{escape(table.note)}</p>" if table.note else ""
    if not table.rows:
        return f"<h2>{name}</h2>{note}"
    head = "".join(
        f'<th scope="col"{_kind(table, at, "")}>{escape(column)}</th>'
        for at, column in enumerate(table.columns)
    )
    body = "\n".join(_row(table, row) for row in table.rows)
    foot = f"\n<tfoot>\n{_row(table, table.total)}\n</tfoot>" if table.total else ""
    return (
        f'<h2>{name}</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="{name}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table>\n</div>{note}"
    )


def _row(table: Table, row: Sequence[str]) -> str:
    first, *rest = row
    cells = "".join(f"<td{_kind(table, at, cell)}>{escape(cell)}</td>" for at, cell in enumerate(rest, 1))
    return f'<tr><th scope="row"{_kind(table, 0, first)}>{escape(first)}</th>{cells}</tr>'


def _kind(table: Table, at: int, cell: str) -> str:
    if at < len(table.texts):
        return ' class="text"'
    return ' class="below"' if cell.startswith("-") else ""
