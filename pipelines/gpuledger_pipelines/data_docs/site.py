"""How Data Docs look: pages that load nothing, and in which what the ledger holds is text.

The library's own pages fetch styles and scripts from six hosts of the internet, and write values into the page as they
are. Ours stand in their place by configuration: ``folder`` names the classes below. Templates of the same name as one
of the library's are ours, all others the library's.
"""

import copy
import html
import json
from collections import OrderedDict
from typing import Any, cast

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.data_context.types.resource_identifiers import ValidationResultIdentifier
from great_expectations.render.components import RenderedDocumentContent
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.renderer.site_builder import DefaultSiteIndexBuilder, SiteBuilder
from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BaseLoader, ChoiceLoader, PackageLoader

NEWEST = 1_000
"""Results that the index lists; the pages of older ones stay until their results go."""


class PageView(DefaultJinjaPageView):
    """A page with our templates before the library's."""

    def __init__(self, custom_styles_directory: None = None, custom_views_directory: None = None) -> None:
        super().__init__(custom_styles_directory, custom_views_directory)
        theirs = cast("BaseLoader", self.env.loader)
        self.env.loader = ChoiceLoader([PackageLoader("gpuledger_pipelines.data_docs"), theirs])


class IndexView(PageView, DefaultJinjaIndexPageView):
    """The page that lists the others."""

    _template = "index_page.j2"


class ResultRenderer(ValidationResultsPageRenderer):
    """Renders a result whose values can be no markup: names of accounts and reasons come from outside."""

    def render(
        self, validation_results: ExpectationSuiteValidationResult, suite_parameters: None = None
    ) -> RenderedDocumentContent:
        """Return the page's content."""
        shown = copy.deepcopy(validation_results)
        for outcome in shown.results:
            outcome.result = _escaped(outcome.result)
        shown.meta = _escaped(shown.meta)
        return cast("RenderedDocumentContent", super().render(shown, suite_parameters))


class Site(SiteBuilder):
    """Builds the pages and nothing beside them: no fonts, no pictures."""

    def build(
        self,
        resource_identifiers: list[Any] | None = None,
        build_index: bool = True,  # noqa: FBT001, FBT002 - the library's signature
    ) -> tuple[str | None, object]:
        """Make the pages of the resources, or all; return where the index is, and what it lists."""
        for section in self.site_section_builders.values():
            section.build(resource_identifiers=resource_identifiers)
        _, links = self.site_index_builder.build(build_index=build_index)
        return self.get_resource_url(only_if_exists=False), links


class Index(DefaultSiteIndexBuilder):
    """Lists the newest results, of which it reads no more than whether they hold."""

    def _add_validations_to_index_links(
        self, index_links_dict: "OrderedDict[str, Any]", keys: list[ValidationResultIdentifier]
    ) -> None:
        results = self.data_context.validation_results_store
        for key in sorted(keys, key=lambda key: key.run_id.run_time, reverse=True)[:NEWEST]:
            kept = json.loads(results.store_backend.get(key.to_tuple()))  # type: ignore[no-untyped-call]
            told = _escaped(kept["meta"]["batch_parameters"])
            self.add_resource_info_to_index_links_dict(  # type: ignore[no-untyped-call]
                index_links_dict,
                key.expectation_suite_identifier.name,
                "validations",
                batch_identifier=key.batch_identifier,
                run_id=key.run_id,
                run_time=key.run_id.run_time,
                run_name=told["cluster"],
                validation_success=kept["success"],
                asset_name=told["rows"],
            )


def _escaped(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    match value:
        case dict():
            return {key: _escaped(each) for key, each in value.items()}
        case list():
            return [_escaped(each) for each in value]
        case str():
            return html.escape(value)
        case _:
            return value
