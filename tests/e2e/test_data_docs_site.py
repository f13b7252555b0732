"""Data Docs in a real Chromium: pages load nothing, run nothing, and show what does not hold."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.e2e.browsing import DESKTOP, PHONE
from tests.integration.pipelines.docs import FAILS, HOLDS, NASTY, keep

from gpuledger_pipelines.data_docs.folder import DataDocs, Tried

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> DataDocs:
    folder = tmp_path_factory.mktemp("docs")
    docs = DataDocs(folder / "kept", kept=5)
    tried = [("gpu_bucket", "c", [(NASTY, -1), ("c/b", 5)]), ("usage_hour", NASTY, [("c/b", 5)])]
    for table, cluster, rows in tried:
        keep(docs, Tried(table, cluster, "2024-03-01 to 2024-03-31", "r"), folder / "db", rows)
    docs.build()
    return docs


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_pages_show_what_does_not_hold_and_load_nothing(
    docs: DataDocs, browser: "Browser", size: tuple[int, int], shots: Path
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    asked: list[str] = []
    broken: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(docs.index.as_uri())
    assert page.locator("tbody tr").count() == 4  # two results, two suites
    page.screenshot(path=shots / f"data-docs-{size[0]}.png")
    page.get_by_role("link", name="fails").click()
    assert page.get_by_text(FAILS).is_visible()
    assert page.get_by_text(NASTY).first.is_visible()
    assert page.locator("#hurt").count() == 0
    page.screenshot(path=shots / f"data-docs-result-{size[0]}.png", full_page=True)
    page.get_by_label("only what does not hold").check()
    assert page.get_by_text(FAILS).is_visible()
    assert not page.get_by_text(HOLDS).is_visible()
    page.get_by_role("link", name="All results").click()
    page.get_by_role("link", name="gpu_bucket").click()
    assert page.get_by_text(HOLDS).is_visible()
    page.get_by_role("link", name="All results").click()
    assert page.url.partition("?")[0] == docs.index.as_uri()
    assert [url for url in asked if not url.startswith("file:")] == []
    assert broken == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
