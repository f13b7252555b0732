"""Every page in a real Chromium: figures are seen, nothing breaks, a phone is wide enough."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.e2e.browsing import DESKTOP, PHONE, opened, settled

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SEEN = {
    "/?cluster=alpha": (
        "Overview",
        ["Impact", "What changed since the week before", "in the week before", "No target is set."],
        5,
    ),
    "/pyramid?cluster=alpha": (
        "Pyramid",
        ["Impact", "Occupancy", "46,080.0", "as of 2026-03-11 06:00 UTC", "GPU_UTIL"],
        2,
    ),
    "/budget-versus-actual?cluster=alpha": (
        "Budget versus actual",
        ["43,008.0", "language/dialogue", "(over budget)", "Download the accounts (CSV)"],
        2,
    ),
    "/fair-share?cluster=alpha": (
        "Fair share",
        ["64 of 64 GPUs are issued", "alpha/language/dialogue", "0.595238", "48 GPUs"],
        1,
    ),
    "/waits?cluster=alpha": (
        "Queue and waits",
        ["7 requests", "The order explained", "3-4, paid for", "not known yet", "Nine in ten started"],
        2,
    ),
    "/waste?cluster=alpha": (
        "Waste",
        ["40.0 were idle", "alpha/robotics", "u1, alpha/robotics", "It says nothing of why"],
        2,
    ),
    "/work": ("My work", ["Which workload?", "Cluster"], 0),
    "/hosts?cluster=alpha": (
        "Hosts",
        ["No host of alpha is in the inventory", "gpuledger inventory apply"],
        0,
    ),
    "/audit": ("Audit", ["could not be read", "gpuledger dlq list", "No budget period was closed yet"], 0),
    "/planning": ("Planning", ["no account here that is divided", "gpuledger budget apply"], 0),
    "/proposals": ("Proposals", ["Nobody waits for an answer.", "gpuledger proposal make"], 0),
    "/admin": ("Admin", ["shown to administrators", "gpuledger token list", "no account that you reach"], 0),
    "/lesson": ("Lesson", ["each team gets 25 GPUs", "flat rule", "the director"], 2),
    "/lesson?lang=zh-Hant&begin=zero": ("一堂課", ["A 分配不到", "50", "33", "計畫主持人"], 2),
}
"""Path -> its title, words that are seen, and how many charts there are."""
IDS = [
    "overview",
    "pyramid",
    "budget",
    "shares",
    "waits",
    "waste",
    "work",
    "hosts",
    "audit",
    "planning",
    "proposals",
    "admin",
    "lesson",
    "lesson-zh",
]
IS_DESCRIBED = """chart => [chart, ...chart.querySelectorAll('*')]
    .some(part => (part.getAttribute('aria-label') || '').length > 20)"""
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("path", SEEN, ids=IDS)
def test_a_page_shows_its_figures(
    browser: "Browser", pages_url: str, path: str, size: tuple[int, int], shots: Path
) -> None:
    page = opened(browser, pages_url + path, size)
    title, words, _ = SEEN[path]
    assert page.inner_text("h1") == title
    text = page.inner_text('[data-testid="stMain"]')
    assert [word for word in words if word not in text] == []
    assert page.locator(ERRORS).count() == 0
    assert _overflow(page) <= 1
    page.screenshot(path=shots / f"{title}-{size[0]}.png")
    page.close()


@pytest.mark.parametrize("path", SEEN, ids=IDS)
def test_every_chart_and_table_can_be_read_without_seeing_it(
    browser: "Browser", pages_url: str, path: str
) -> None:
    page = opened(browser, pages_url + path, DESKTOP)
    charts = page.locator('[data-testid="stVegaLiteChart"]')
    assert charts.count() == SEEN[path][2]
    for n in range(charts.count()):
        assert charts.nth(n).evaluate(IS_DESCRIBED)
    for table in page.locator("table").all():
        assert table.locator("caption").count() == 1
        assert table.locator('th[scope="col"]').count() > 1
    page.close()


def test_nothing_is_asked_of_the_internet_and_the_console_is_quiet(
    browser: "Browser", pages_url: str
) -> None:
    page = browser.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.goto(pages_url)
    settled(page)
    assert [url for url in asked if not url.startswith((pages_url, "data:", "blob:", "ws:"))] == []
    assert complaints == []
    page.close()


def test_a_filter_goes_into_the_address_and_back(browser: "Browser", pages_url: str) -> None:
    page = opened(browser, pages_url + "/pyramid?cluster=beta", DESKTOP)
    assert "Availability, Occupancy, Impact: unknown" in page.inner_text('[data-testid="stMain"]')
    page.get_by_role("combobox").first.click()
    page.get_by_role("option", name="gamma").click()
    page.wait_for_url("**cluster=gamma**")
    page.get_by_text("gpuledger rollup").wait_for()
    page.close()


def test_the_dark_theme_follows_the_viewer(browser: "Browser", pages_url: str) -> None:
    page = opened(browser, pages_url, DESKTOP, scheme="dark")
    colour = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor"
    )
    assert colour == "rgb(16, 22, 29)"
    page.close()


def _overflow(page: "Page") -> int:
    """How many pixels the page can be scrolled sideways."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide
