"""Expectations of our own, one for each law that a table can break.

Each is a query for exceptions that finds none. What it expects is told in words, with the law, the rows that break it
and the query: in results that are kept, and in Data Docs. Importing this module imports Great Expectations, which takes
seconds: import it where a suite is built or read.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from great_expectations.core import ExpectationValidationResult
from great_expectations.expectations.core.unexpected_rows_expectation import UnexpectedRowsExpectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.render.components import (
    CollapseContent,
    LegacyDiagnosticRendererType,
    RenderedStringTemplateContent,
    RenderedTableContent,
)
from great_expectations.render.renderer.renderer import renderer


class ExpectNoRows(UnexpectedRowsExpectation):
    """No row is an exception to what the description says."""

    law: ClassVar[str] = ""
    """The law of the design that the rows would break, by number and name."""

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_STATEMENT)
    def _diagnostic_unexpected_statement_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedStringTemplateContent | CollapseContent]:
        """Return what stands behind the description: an error, the law, the query."""
        if result is None or result.expectation_config is None:
            return []
        raised = super()._diagnostic_unexpected_statement_renderer(
            configuration, result, runtime_configuration
        )
        query = {"query": result.expectation_config.kwargs["unexpected_rows_query"]}
        return [
            *raised,
            *([_text("$law", {"law": cls.law}, law="badge")] if cls.law else []),
            CollapseContent(
                collapse_toggle_link="the query for exceptions",
                collapse=[_text("$query", query, query="query")],
            ),
        ]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> list[RenderedTableContent | CollapseContent] | None:
        del configuration, runtime_configuration
        rows = (((result and result.result) or {}).get("details") or {}).get("unexpected_rows") or []
        if not rows:
            return None
        names = list(rows[0])
        return [
            RenderedTableContent(header_row=names, table=[[str(row.get(n)) for n in names] for row in rows])
        ]

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(
        cls,
        configuration: ExpectationConfiguration | None = None,
        result: ExpectationValidationResult | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> str:
        del configuration, runtime_configuration
        count = ((result and result.result) or {}).get("observed_value")
        return "--" if count is None else f"exceptions: {count:,}"


class ExpectConservation(ExpectNoRows):
    """What is summed up is the sum of its parts, and parts are what the ledger has."""

    law = "law 4: conservation"


class ExpectNothingDropped(ExpectNoRows):
    """Everything that the ledger tells of has its row."""

    law = "law 7: nothing is dropped"


class ExpectClosedToStay(ExpectNoRows):
    """A period that was shut is what was sealed; what is learned later corrects an open one."""

    law = "law 8: closed is closed"


class ExpectPartition(ExpectNoRows):
    """Every installed GPU-second is in exactly one state, and the residual is 0."""

    law = "law 9: partition"


class ExpectUnknownNotZero(ExpectNoRows):
    """What nobody knows is missing, with a reason, and coverage is never more than the whole."""

    law = "law 10: missing is unknown"


def _text(template: str, params: Mapping[str, str], **classes: str) -> RenderedStringTemplateContent:
    """Return words, each parameter in a style of its own; the library escapes parameters where there are styles."""
    return RenderedStringTemplateContent(
        content_block_type="string_template",
        string_template={
            "template": template,
            "params": dict(params),
            "styling": {"params": {name: {"classes": [name_of]} for name, name_of in classes.items()}},
        },
    )
