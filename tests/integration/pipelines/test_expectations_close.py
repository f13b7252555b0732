"""The suite of a statement expects the columns of its table; that each rule bites stands in ``test_close_gate``."""

from gpuledger.warehouse.close_tables import statement
from gpuledger_pipelines.expectations import close as expect


def test_it_expects_the_columns_of_its_table() -> None:
    columns = (*expect.KEY, *expect.SIGNED, *expect.UNSIGNED)
    assert sorted(columns) == sorted(column.name for column in statement.columns)
    assert [column.name for column in statement.primary_key.columns] == list(expect.KEY)


def test_every_rule_says_what_holds_in_words() -> None:
    told = [each.description for each in expect.statement("'c'", "'p'") if each.description]
    assert len(set(told)) == len(told) == 6
