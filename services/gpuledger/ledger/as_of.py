"""Rows of projections as a row of the book says them: each is in force from ``since_seq`` until ``until_seq``."""


def said(alias: str, seq: int | None) -> str:
    """Return the condition on rows that were in force when a row of the book was the newest; now for None.

    Args:
        alias: The name of the table in the query.
        seq: The row of the book; the query is given it as ``seq``.
    """
    if seq is None:
        return f"{alias}.until_seq IS NULL"
    return f"{alias}.since_seq <= %(seq)s AND ({alias}.until_seq IS NULL OR {alias}.until_seq > %(seq)s)"
