"""No expectation stands in a suite without a fault that it finds; who adds one without is told here.

What is expected of every table alike (its columns, its key, nothing missing, nothing negative, known words) is
broken in each of them; what holds of one table is broken by the test of its suite, under the expectation's words.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.pipelines.biting import SPAN, fill, verdict
from tests.integration.pipelines.rows import Database

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines.declaring import GATES
from gpuledger_pipelines.definitions import ASSETS
from gpuledger_pipelines.expectations import budget, close
from gpuledger_pipelines.gate import Subject

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

EVERYWHERE = {"nothing is missing that may not be", "no amount is negative"}
"""What ``shape`` says of every table in words."""


SIGNED = {"budget_vs_actual": budget.MAY_BE_NEGATIVE, "forecast": ("delivered_gpu_ms",)}
"""Amounts that the suite of their own table lets be below zero, under conditions that its test breaks."""


def expectations(table: str) -> "list[Expectation]":
    assert ASSETS  # imported: every table is declared
    return list(GATES[table].expect(Subject(SPAN, Calendar())))


def named(expectation: "Expectation") -> str:
    """How a finding of the expectation begins."""
    return expectation.description or expectation.expectation_type.removeprefix("expect_")


def break_shape(database: Database, table: str) -> None:
    """A column too many, a row twice, a value that is missing, one below zero, and a word that nobody knows."""
    columns = database.query(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_schema = 'warehouse' AND table_name = :t ORDER BY ordinal_position",
        t=table,
    )
    required, optional = (
        [name for name, *rest in columns if tuple(rest) == ("bigint", nullable)] for nullable in ("NO", "YES")
    )
    words = [name for name, *_ in columns if name in ("class", "turn", "state")]
    missing = required[-1]
    negative = next(name for name in (*required, *optional) if name not in SIGNED.get(table, ()))
    database.execute(f"ALTER TABLE warehouse.{table} DROP CONSTRAINT pk_{table}")
    database.execute(f"ALTER TABLE warehouse.{table} ALTER COLUMN {missing} DROP NOT NULL")
    broken = [f"{missing} = NULL", f"{negative} = -1", *(f"{word} = 'odd'" for word in words)]
    database.execute(f"UPDATE warehouse.{table} SET {', '.join(broken)}")
    database.execute(f"INSERT INTO warehouse.{table} SELECT * FROM warehouse.{table}")
    database.execute(f"ALTER TABLE warehouse.{table} ADD COLUMN too_many integer")


def test_what_is_expected_of_every_table_bites_in_each(database: Database) -> None:
    fill(database)
    silent = {}
    for table in GATES:
        break_shape(database, table)
        found = [finding.expectation for finding in verdict(database, GATES[table]).findings]
        alike = [
            named(each)
            for each in expectations(table)
            if each.description is None or each.description in EVERYWHERE
        ]
        assert len(alike) >= 4
        silent[table] = [name for name in alike if not any(told.startswith(name) for told in found)]
    assert silent == {table: [] for table in GATES}


def test_what_is_expected_of_one_table_has_a_test_that_plants_a_fault() -> None:
    here = Path(__file__).parent
    tests = "".join(path.read_text() for path in here.glob("test_*.py") if path != Path(__file__))
    suites = {table: expectations(table) for table in GATES}
    suites["statement"] = close.statement("'c'", "'2024-03'")
    silent = {
        (table, str(each.description))
        for table, suite in suites.items()
        for each in suite
        if each.description and each.description not in EVERYWHERE and f'"{each.description}"' not in tests
    }
    assert silent == set()
