"""What people see: one JSON document, or a table; progress on stderr."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class Advance(Protocol):
    """Moves a progress bar to a position."""

    def __call__(self, done: int) -> None:
        """Set how much is done."""
        ...


def print_json(document: Any) -> None:  # noqa: ANN401 - any JSON document
    """Print one JSON document on stdout."""
    print(json.dumps(document, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "") -> None:
    """Print a table on stdout; numbers (columns that start with ``>``) to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if title:
        print(title)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    # A pipe has no width; a wide one keeps rows whole.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False).print(table)


def counted(number: int, what: str) -> str:
    """Return a number of things in words: ``1 change``, ``2 changes``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def note(text: str) -> None:
    """Print a line for people on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """Show a progress bar on stderr: a live one on a terminal, a line per tenth elsewhere."""
    if not sys.stderr.isatty():
        yield _tenths(what, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=max(total, 1))
        yield lambda done: bar.update(task, completed=min(done, total))
        bar.update(task, completed=max(total, 1))


def _tenths(what: str, total: int) -> Advance:
    shown = -1

    def advance(done: int) -> None:
        nonlocal shown
        tenth = 10 * min(done, total) // max(total, 1)
        if tenth > shown:
            shown = tenth
            note(f"{what}: {tenth * 10} %")

    return advance
