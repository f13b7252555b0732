"""A Chromium for tests and screenshots: one that is installed, kept away from the internet."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = (1280, 900)
PHONE = (390, 844)
SETTLE_MS = 90_000


def executable() -> str:
    """Return the path of a Chromium, from GPULEDGER_TEST_CHROMIUM or the search path."""
    named = os.environ.get("GPULEDGER_TEST_CHROMIUM")
    found = (
        named or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    )
    if found is None:
        raise RuntimeError("no Chromium: sudo apt-get install -y chromium, or set GPULEDGER_TEST_CHROMIUM")
    return found


@contextlib.contextmanager
def launched() -> Iterator["Browser"]:
    """Start a headless Chromium and end it afterwards."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: "Browser", url: str, size: tuple[int, int], *, scheme: str = "light") -> "Page":
    """Open a page and wait until Streamlit has drawn it and its charts."""
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        device_scale_factor=1,
    )
    page.goto(url)
    settled(page)
    return page


def settled(page: "Page") -> None:
    """Wait until a run of the script has ended and nothing is being drawn."""
    page.wait_for_selector("h1", timeout=SETTLE_MS)
    page.wait_for_function(
        """() => {
            const app = document.querySelector('[data-testid="stApp"]');
            const charts = [...document.querySelectorAll('[data-testid="stVegaLiteChart"]')];
            return app && app.getAttribute('data-test-script-state') !== 'running'
                && !document.querySelector('[data-testid="stSkeleton"], [data-testid="stSpinner"]')
                && charts.every(chart => chart.querySelector('canvas, svg'));
        }""",
        timeout=SETTLE_MS,
    )
    page.wait_for_timeout(700)
