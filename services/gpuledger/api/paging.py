"""Long answers in pages. Rows are only added between two recorded times, so that a place in the list is a cursor."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import Query

PAGE_MAX = 1000

Row = TypeVar("Row")

Limit = Annotated[int, Query(description="How many rows at most.", ge=1, le=PAGE_MAX)]
After = Annotated[int, Query(description="The `next` of the page before, with its `as_of`.", ge=0, le=2**53)]


def page(rows: Sequence[Row], after: int, limit: int) -> tuple[Sequence[Row], int | None]:
    """Return a page, and the ``after`` of the next one; None on the last."""
    end = after + limit
    return rows[after:end], end if end < len(rows) else None
