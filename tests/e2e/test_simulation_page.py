"""The page of a simulation in a real Chromium: it stands alone, is drawn, and a phone is wide enough."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.e2e.browsing import DESKTOP, PHONE
from tests.unit.simulator.stories import in_order, scenario, started, submitted

from gpuledger.simulator.measures import measure
from gpuledger.simulator.report import page
from gpuledger.simulator.summary import summarise

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_it_asks_for_nothing_and_shows_every_chart(
    browser: "Browser", tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    told = scenario(days=3)
    facts = in_order(
        submitted("a", 0, gpus=4), started("a", 60, {"h1": 4}), submitted("b", 0, account="org/b")
    )
    reports = [
        summarise(measure(facts, told), told, world=world, seed=1, wall_s=0.5)
        for world in ("old", "gpuledger")
    ]
    path = tmp_path / "page.html"
    path.write_text(page(reports), encoding="utf-8")
    width, height = size
    shown = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    asked, told_of = list[str](), list[str]()
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: told_of.append(message.text))
    shown.goto(path.as_uri())
    assert asked == [path.as_uri()]
    assert told_of == []
    charts = shown.locator("figure > svg")
    assert charts.count() == 5
    assert all((charts.nth(n).bounding_box() or {"height": 0})["height"] > 40 for n in range(5))
    assert shown.get_by_role("img", name="Occupancy over time").is_visible()
    shown.locator("summary").first.click()
    assert shown.get_by_role("cell", name="1 min, 1 min").first.is_visible()
    assert shown.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 1
    shown.close()
