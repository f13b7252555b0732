"""The router, and what holds of every page."""

import re
from pathlib import Path

from tests.unit.dashboards.pages import FakeClient, run_page

from gpuledger_dashboards import run


def test_the_router_opens_with_the_overview(client: FakeClient) -> None:
    app = run_page(Path(run.APP))
    assert [title.value for title in app.title] == ["Overview"]


def test_no_page_uses_the_word_that_means_the_order_inside_an_account() -> None:
    """The lesson alone tells of the old world, where everybody ranked their own work."""
    pages = Path(run.APP).parent.rglob("*.py")
    saying = {path.name for path in pages if re.search(r"priorit|優先權", path.read_text(), re.IGNORECASE)}
    assert saying == {"lesson.py", "lesson_texts.py"}
