"""Expectations of our own are told in words, with their law, the rows that break it and the query."""

from typing import Any

from gpuledger.kernel.calendar import Calendar
from gpuledger_pipelines import laws
from gpuledger_pipelines.declaring import GATES
from gpuledger_pipelines.definitions import ASSETS
from gpuledger_pipelines.expectations import close
from gpuledger_pipelines.expectations.shape import Law, no_rows
from gpuledger_pipelines.gate import Subject
from gpuledger_pipelines.partitions import Span

SUBJECT = Subject(Span("c", 0, 86_400, 86_400), Calendar())


def result(expectation: laws.ExpectNoRows, **told: object) -> Any:  # noqa: ANN401 - a value of the library
    from great_expectations.core import ExpectationValidationResult

    return ExpectationValidationResult(
        success=False, expectation_config=expectation.configuration, result=told
    )


def partition() -> laws.ExpectNoRows:
    expectation = no_rows("nothing is lost", "SELECT 1 FROM batch", law=Law.PARTITION)
    assert isinstance(expectation, laws.ExpectPartition)
    return expectation


def test_every_law_that_a_table_can_break_is_expected_of_some_table() -> None:
    assert ASSETS  # imported: every table is declared
    suites = [list(gate.expect(SUBJECT)) for gate in GATES.values()] + [close.statement("'c'", "'p'")]
    used = {type(each).__name__ for suite in suites for each in suite if isinstance(each, laws.ExpectNoRows)}
    assert used == set(Law)


def test_each_law_has_its_number() -> None:
    told = {law: getattr(laws, law).law.split(":")[0] for law in Law if law is not Law.NONE}
    assert sorted(told.values()) == ["law 10", "law 4", "law 7", "law 8", "law 9"]


def test_its_law_and_query_stand_behind_the_description() -> None:
    law, query = laws.ExpectPartition._diagnostic_unexpected_statement_renderer(result=result(partition()))
    assert law.to_json_dict()["string_template"]["params"] == {"law": "law 9: partition"}
    assert "SELECT 1 FROM batch" in str(query.to_json_dict())
    plain = no_rows("x", "SELECT 1 FROM batch")
    assert isinstance(plain, laws.ExpectNoRows)
    assert len(laws.ExpectNoRows._diagnostic_unexpected_statement_renderer(result=result(plain))) == 1


def test_rows_are_a_table_and_counted() -> None:
    rows = [{"hour_at": "12:00", "gpu_ms": -1}, {"hour_at": "13:00", "gpu_ms": None}]
    told = result(partition(), observed_value=2000, details={"unexpected_rows": rows})
    (table,) = laws.ExpectPartition._diagnostic_unexpected_table_renderer(result=told) or []
    assert table.to_json_dict()["header_row"] == ["hour_at", "gpu_ms"]
    assert table.to_json_dict()["table"] == [["12:00", "-1"], ["13:00", "None"]]
    assert laws.ExpectPartition._diagnostic_observed_value_renderer(result=told) == "exceptions: 2,000"


def test_what_raised_has_neither() -> None:
    told = result(partition())
    assert laws.ExpectPartition._diagnostic_unexpected_table_renderer(result=told) is None
    assert laws.ExpectPartition._diagnostic_observed_value_renderer(result=told) == "--"
