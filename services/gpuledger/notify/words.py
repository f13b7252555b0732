"""What a notice in words is made of. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that a finding names.

    Args:
        title: What is wrong with them.
        columns: Their names.
        rows: A cell for each column.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A notice in words.

    Args:
        subject: One line.
        lead: What happened, in one or two sentences.
        facts: Label and value.
        tables: What was found.
        advice: What can be done.
    """

    subject: str
    lead: str
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    advice: str = ""
