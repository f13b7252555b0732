"""What every suite says: the columns, what may not be missing, what may not be negative, what is unique."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuledger_pipelines.partitions import DaysTouched

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def shape(
    columns: Iterable[str], *, key: Sequence[str], amounts: Sequence[str], nullable: Iterable[str] = ()
) -> "list[Expectation]":
    """Return the expectations about columns.

    Args:
        columns: Exactly these exist.
        key: Together they name one row.
        amounts: Never below zero, where they are known.
        nullable: May be missing; every other column may not.
    """
    from great_expectations.expectations.core.expect_compound_columns_to_be_unique import (
        ExpectCompoundColumnsToBeUnique,
    )
    from great_expectations.expectations.core.expect_table_columns_to_match_set import (
        ExpectTableColumnsToMatchSet,
    )

    columns, nullable = list(columns), set(nullable)
    required = ", ".join(f'"{name}"' for name in columns if name not in nullable)
    # One query each for all columns: an expectation per column costs more than the roll-up.
    return [
        ExpectTableColumnsToMatchSet(column_set=columns, exact_match=True),
        ExpectCompoundColumnsToBeUnique(column_list=list(key)),
        no_rows(
            "nothing is missing that may not be",
            f"SELECT * FROM batch WHERE num_nulls({required}) > 0",
            law=Law.DROPPED,
        ),
        no_rows("no amount is negative", f"SELECT * FROM batch WHERE least({', '.join(amounts)}) < 0"),
    ]


def one_of(column: str, values: Iterable[str]) -> "Expectation":
    """Expect one of the values in every row."""
    from great_expectations.expectations.core.expect_column_values_to_be_in_set import (
        ExpectColumnValuesToBeInSet,
    )

    return ExpectColumnValuesToBeInSet(column=column, value_set=list(values))


def day_rows(days: DaysTouched) -> str:
    """Return days as rows of SQL's ``VALUES``: the day, its first instant, and its end."""
    return ", ".join(
        f"(DATE '{day}', to_timestamp({start_s}), to_timestamp({end_s}))"
        for day, start_s, end_s in zip(days["days"], days["starts"], days["ends"], strict=True)
    )


class Law(StrEnum):
    """Which law of the design exceptions would break, as the class in ``laws`` that expects none."""

    CONSERVATION = "ExpectConservation"
    DROPPED = "ExpectNothingDropped"
    CLOSED = "ExpectClosedToStay"
    PARTITION = "ExpectPartition"
    UNKNOWN = "ExpectUnknownNotZero"
    NONE = "ExpectNoRows"


def no_rows(what_holds: str, query: str, *, law: Law = Law.NONE) -> "Expectation":
    """Expect a query for exceptions to find none.

    Args:
        what_holds: What is expected, in words; it names the finding.
        query: Returns a row for every exception; ``batch`` is the table of the restated rows.
        law: The law that exceptions break; none where they are nonsense all the same.
    """
    from gpuledger_pipelines import laws

    kind: type[laws.ExpectNoRows] = getattr(laws, law)
    # The library puts a subquery with an alias of its own in place of {batch}.
    return kind(
        unexpected_rows_query=f"WITH batch AS (SELECT * FROM {{batch}}) {query}", description=what_holds
    )
