"""Looking through a table beforehand, for those whose rows depend on later ones."""

from collections.abc import Iterator
from dataclasses import replace

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.cells import row_values, without_return
from gpuledger.sources.columns import Columns
from gpuledger.sources.lines import Broken, Lines, each_line
from gpuledger.sources.table import Table, parts


def surveyed(table: Table) -> Iterator[Columns | dict[str, str] | Broken | BadRecord]:
    """Yield what ``surveyed_rows`` does, but rows that were read at once by column."""
    for item in table.lines:
        for part, columns in parts(table.header, item) if isinstance(item, Lines) else ():
            if columns is not None:
                yield columns
            else:
                yield from surveyed_rows(replace(table, lines=iter((part,))))
        if not isinstance(item, Lines):
            yield from surveyed_rows(replace(table, lines=iter((item,))))


def surveyed_rows(table: Table) -> Iterator[dict[str, str] | Broken | BadRecord]:
    """Yield the fields of every row, or why it has none."""
    for item in each_line(table.lines):
        if isinstance(item, Broken):
            yield item
        elif raw := without_return(item.raw):
            try:
                yield row_values(table.header, raw)
            except BadRecord as error:
                yield error
