"""Running a Great Expectations suite over the rows that a run restated.

The library is imported when the first gate runs: it takes seconds, and defining the gates must not. The
context that it validates in is ephemeral, and nothing phones home; what it found is kept by ``data_docs``.
``add_postgres`` refuses the URL of a socket, which the embedded PostgreSQL has; the generic SQL source takes it.
"""

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from gpuledger_pipelines.data_docs.folder import DataDocs, Tried
from gpuledger_pipelines.partitions import Span, utc_days
from gpuledger_pipelines.resources import PROGRESS, calendar

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.expectations.expectation import Expectation

    from gpuledger.kernel.calendar import Calendar

BUCKETS = "bucket_at >= to_timestamp(:from_s) AND bucket_at < to_timestamp(:to_s)"
HOURS = "hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)"
DAYS = "day BETWEEN :first_day AND :last_day"
PERIODS = "period BETWEEN :first_period AND :last_period"
"""Which rows of a table a run restates: those that it deletes, and those that the gate looks at."""

ROWS_SHOWN = 20
"""Failing rows that a finding names; the count beside them is whole."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a suite is built for.

    Args:
        span: What the run restated.
        calendar: The organisation's days and periods.
    """

    span: Span
    calendar: "Calendar"


Expect = Callable[[Subject], "Sequence[Expectation]"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An expectation that does not hold, and rows for which it does not.

    Args:
        expectation: What was expected, in words.
        count: How many rows fail; None where the expectation is not about rows.
        rows: Some of them.
    """

    expectation: str
    count: int | None
    rows: tuple[Mapping[str, object], ...] = ()

    def as_markdown(self) -> str:
        """Return the rows as a table."""
        if not self.rows:
            return f"{self.count if self.count is not None else 'it'} fails"
        names = list(self.rows[0])
        lines = [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]
        lines += [f"| {' | '.join(str(row.get(name)) for name in names)} |" for row in self.rows]
        return f"{self.count} rows fail\n\n" + "\n".join(lines)

    def as_text(self) -> str:
        """Return the finding in one line, with the first row."""
        first = ", ".join(f"{name}={value}" for name, value in self.rows[0].items()) if self.rows else ""
        return f"{self.expectation}: {self.count} rows, first: {first}" if first else self.expectation


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate found.

    Args:
        expectation_count: How many expectations were tried.
        findings: Those that do not hold.
        outdated: The ledger has moved on since the rows were computed, so a difference proves nothing;
            the next run settles it.
        page: Where people find all that was tried; empty where it was not kept.
        unkept: Why it was not.
    """

    expectation_count: int
    findings: tuple[Finding, ...] = field(default=())
    outdated: bool = False
    page: str = ""
    unkept: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything holds."""
        return not self.findings

    @property
    def summary(self) -> str:
        """One line for each finding."""
        if self.passed:
            return f"{self.expectation_count} expectations hold"
        note = " (the ledger has moved on since; run again)" if self.outdated else ""
        return "; ".join(finding.as_text() for finding in self.findings) + note


@dataclass(frozen=True, slots=True)
class Gate:
    """A suite over one table.

    Args:
        table: The table, in schema ``warehouse``.
        key: The columns that name a row to a person.
        where: Which rows the run restated, in terms of the span's parameters.
        expect: What must hold of them.
    """

    table: str
    key: tuple[str, ...]
    where: str
    expect: Expect

    def run(
        self, engine: sa.Engine, span: Span, docs: DataDocs | None = None, *, run_id: str = ""
    ) -> Verdict:
        """Try every expectation on the rows of the span.

        Args:
            engine: The database that holds the warehouse.
            span: What was restated.
            docs: Where to keep what was found; nowhere unless given.
            run_id: The run that asks, for whoever reads there.
        """
        started = time.perf_counter()
        with engine.connect() as connection:
            subject = Subject(span, calendar(connection))
        restated = in_place(f"cluster = :cluster AND {self.where}", subject)
        query = f"SELECT * FROM warehouse.{self.table} WHERE {restated}"
        url = engine.url.render_as_string(hide_password=False)
        expectations = list(self.expect(subject))
        result = validate(url, query, expectations, self.key)
        findings = findings_of(result)
        first, last = utc_days(span.from_s, span.to_s)
        tried = Tried(self.table, span.cluster, f"{first} to {last}", run_id)
        page, unkept = kept(docs, tried, result, expectations)
        outdated = bool(findings) and _moved_on(engine, span)
        verdict = Verdict(len(expectations), findings, outdated, page, unkept)
        PROGRESS.info(
            "%s: %s: %s in %.1f s", span.cluster, self.table, verdict.summary, time.perf_counter() - started
        )
        return verdict


def in_place(sql: str, subject: Subject) -> str:
    """Return SQL with the span written into it, for a library that binds no parameters."""
    values = {"cluster": literal(subject.span.cluster), **{k: str(v) for k, v in _times(subject).items()}}
    for key, value in values.items():
        sql = sql.replace(f":{key}", value)
    return sql


def literal(text: str) -> str:
    """Return SQL for a text that is data, and could hold quotes, braces or colons: it is written as bytes."""
    return f"convert_from(decode('{text.encode().hex()}', 'hex'), 'UTF8')"


def _times(subject: Subject) -> dict[str, object]:
    span, days = subject.span, subject.calendar
    first, last = days.day_of(span.from_s), days.day_of(span.to_s - 1)
    periods = days.periods_between(span.from_s, span.to_s)
    return {
        "from_s": span.from_s,
        "to_s": span.to_s,
        "now_s": span.now_s,
        "first_day": f"DATE '{first}'",
        "last_day": f"DATE '{last}'",
        "first_period": f"'{periods[0]}'",
        "last_period": f"'{periods[-1]}'",
    }


def validate(
    url: str, query: str, expectations: "Sequence[Expectation]", key: Sequence[str]
) -> "ExpectationSuiteValidationResult":
    """Try the expectations on the rows of a query; return what the library says of each."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.datasource.fluent.interfaces import GxDatasourceWarning

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GxDatasourceWarning)  # recommends the source that refuses sockets
        source = context.data_sources.add_sql("warehouse", connection_string=url)
    try:
        asset = source.add_query_asset("rows", query=query)
        definition = gx.ValidationDefinition(
            name="rows",
            data=asset.add_batch_definition_whole_table("rows"),
            suite=context.suites.add(gx.ExpectationSuite(name="rows", expectations=list(expectations))),
        )
        return context.validation_definitions.add(definition).run(
            result_format={"result_format": "COMPLETE", "unexpected_index_column_names": list(key)}
        )
    finally:
        source.get_execution_engine().close()


def findings_of(result: "ExpectationSuiteValidationResult") -> tuple[Finding, ...]:
    """Return what does not hold."""
    return tuple(_finding(outcome) for outcome in result.results if not outcome.success)


def kept(
    docs: DataDocs | None,
    tried: Tried,
    result: "ExpectationSuiteValidationResult",
    expectations: "Sequence[Expectation]",
) -> tuple[str, str]:
    """Keep a result where one is kept; return where its page is, or why there is none.

    A folder that cannot be written stops no roll-up: what was found counts, and is told all the same.
    """
    if docs is None:
        return "", ""
    try:
        return docs.link(docs.keep(tried, result, expectations)), ""
    except OSError as error:
        PROGRESS.warning("%s: what the gate of %s found is not kept: %s", tried.cluster, tried.table, error)
        return "", f"{error}; GPULEDGER_DATA_DOCS names the folder"


def _finding(outcome: "ExpectationValidationResult") -> Finding:
    config = outcome.expectation_config
    assert config is not None  # noqa: S101 - only results read back from files lack it
    told = config.description or " ".join(
        [config.type.removeprefix("expect_"), *(str(v) for k, v in config.kwargs.items() if k != "batch_id")]
    )
    result: dict[str, Any] = outcome.result or {}
    if outcome.exception_info and not result:
        return Finding(f"{told}: {_raised(outcome.exception_info)}", None)
    rows = (
        (result.get("details") or {}).get("unexpected_rows")
        or result.get("unexpected_index_list")
        or result.get("unexpected_list")  # what uniqueness over several columns has instead
        or []
    )
    count = result.get("unexpected_count", result.get("observed_value") if rows else None)
    return Finding(told, count, tuple(dict(row) for row in rows[:ROWS_SHOWN]))


def _raised(info: Mapping[str, Any]) -> str:
    if "exception_message" in info:
        return str(info["exception_message"])
    return "; ".join(str(each.get("exception_message")) for each in info.values())


def _moved_on(engine: sa.Engine, span: Span) -> bool:
    with engine.connect() as connection:
        moved = connection.execute(
            sa.text(
                "SELECT last_seq <> ledger_seq FROM ledger_read.books JOIN warehouse.watermark ON cluster = book"
                " WHERE book = :cluster"
            ),
            {"cluster": span.cluster},
        ).scalar()
    return bool(moved)
