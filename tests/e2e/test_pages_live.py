"""Both pages over the real API and a real database: their figures are the API's."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from tests.commands.running import quick

from gpuledger import settings
from gpuledger.client import LedgerClient
from gpuledger_dashboards import figures, run

PAGES = Path(run.APP).parent / "app_pages"


@pytest.fixture(autouse=True)
def _over_the_api(api_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GPULEDGER_API_URL", api_url)
    settings.load.cache_clear()
    st.cache_data.clear()
    yield
    settings.load.cache_clear()
    st.cache_data.clear()


def _text(page: str, **query: str) -> str:
    app = AppTest.from_file(PAGES / f"{page}.py", default_timeout=90)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    kinds = (app.markdown, app.caption, app.info, app.code)
    return "\n".join(element.value for kind in kinds for element in kind).replace("\\", "")


def test_the_pyramid_says_what_the_api_says(api_url: str) -> None:
    text = _text("pyramid", cluster="alpha")
    with LedgerClient(api_url) as client:
        days = client.layers("day", cluster="alpha").rows[-30:]
    installed = figures.hours(sum(row.installed_gpu_ms or 0 for row in days))
    assert f"of {installed} installed GPU-h" in text
    owed = figures.hours(sum(row.owed_gpu_ms or 0 for row in days))
    assert f"of {owed} owed GPU-h" in text


def test_a_cluster_without_inventory_says_so() -> None:
    text = _text("pyramid", cluster="beta")
    assert "Availability, Occupancy, Impact: unknown" in text
    assert "gpuledger budget apply" in text


def test_budget_versus_actual_says_what_the_api_says(api_url: str) -> None:
    text = _text("budget_versus_actual", cluster="alpha", period="2026-01")
    with LedgerClient(api_url) as client:
        rows = client.budget_vs_actual(cluster="alpha", period="2026-01").rows
    charged = figures.hours(sum(row.charged_gpu_ms for row in rows))
    budget = figures.hours(sum(row.budget_gpu_ms for row in rows))
    assert f"{charged} of {budget} budgeted GPU-h were charged" in text


def test_a_cluster_without_periods_names_the_roll_up() -> None:
    assert "gpuledger rollup" in _text("budget_versus_actual", cluster="gamma")


@pytest.mark.parametrize(
    ("page", "query", "command", "wanted"),
    [
        (
            "waits", {"cluster": "alpha"}, ("waits", "--by", "total", "--cluster", "alpha"),
            lambda row: f"{row['request_count']:,} requests: {row['started_count']:,} started",
        ),
        (
            "waste", {"cluster": "alpha"}, ("waste", "--by", "total", "--cluster", "alpha"),
            lambda row: f"{figures.hours(row['idle_gpu_ms'])} were idle",
        ),
        (
            "pyramid", {"cluster": "alpha", "from": "2026-03-04", "to": "2026-03-10"},
            ("layers", "--cluster", "alpha", "--from", "2026-03-04", "--to", "2026-03-11"),
            lambda row: f"{figures.hours(row['window_met_gpu_ms'])} of {figures.hours(row['owed_gpu_ms'])} owed GPU-h",
        ),
    ],
)  # fmt: skip
def test_numbers_on_pages_are_those_of_the_command_line(
    seeded_url: str,
    tmp_path: Path,
    page: str,
    query: dict[str, str],
    command: tuple[str, ...],
    wanted: Callable[[dict[str, Any]], str],
) -> None:
    ran = quick(
        *command, "--json", settings={"GPULEDGER_DATABASE_URL": seeded_url, "GPULEDGER_HOME": str(tmp_path)}
    )
    (row,) = json.loads(ran.out)["rows"]
    assert wanted(row) in _text(page, **query)
