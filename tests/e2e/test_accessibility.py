"""axe-core finds nothing serious on any page, in light and in dark, wide and narrow."""

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
from tests.e2e.browsing import DESKTOP, PHONE, opened
from tests.e2e.test_browser import IDS, SEEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
SERIOUS = {"serious", "critical"}
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.mark.parametrize(
    ("size", "scheme"),
    [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light")],
    ids=["light", "dark", "phone"],
)
@pytest.mark.parametrize("path", SEEN, ids=IDS)
def test_nothing_serious_is_wrong(
    browser: "Browser", pages_url: str, path: str, size: tuple[int, int], scheme: str
) -> None:
    page = opened(browser, pages_url + path, size, scheme=scheme)
    page.evaluate(AXE)
    options = {"runOnly": {"type": "tag", "values": WCAG}, "resultTypes": ["violations"]}
    result = page.evaluate(f"axe.run(document, {json.dumps(options)})")
    page.close()
    found = [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]}"
        for violation in result["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
        if not _is_streamlits_own(violation["id"], node)
    ]
    assert found == []


def _is_streamlits_own(rule: str, node: dict[str, Any]) -> bool:
    """Say whether a finding is of what Streamlit draws itself: the parts of a date field stand close together.

    They are reached by keyboard one after the other, and the calendar beside them is large enough to point at.
    """
    html: str = node["html"]
    return rule == "target-size" and 'role="spinbutton"' in html
