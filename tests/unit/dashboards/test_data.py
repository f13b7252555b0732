"""What the pages ask is kept for a moment, errors are not."""

import datetime as dt
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
from tests.unit.dashboards.pages import FakeClient

from gpuledger import settings
from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger_dashboards import data


@pytest.fixture(autouse=True)
def _nobody() -> Iterator[None]:
    """Each test's viewer has yet to sign in."""
    yield
    st.session_state.pop(data.SIGNED_IN, None)


def test_the_same_question_is_asked_once_until_it_is_forgotten(client: FakeClient) -> None:
    first, last = dt.date(2026, 3, 1), dt.date(2026, 3, 2)
    for _ in range(3):
        data.layers("day", "alpha", first, last)
    assert client.asked == [("day", "alpha", "2026-03-01", "2026-03-03")]
    data.forget()
    data.layers("day", "alpha", first, last)
    assert len(client.asked) == 2


def test_everything_that_is_kept_of_the_ledger_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Except the connection, and how a made-up tree is divided, which nothing in the ledger changes."""
    cached = type(data._layers)
    kept = {name for name, value in vars(data).items() if isinstance(value, cached)}
    cleared: set[str] = set()
    for name in kept:
        monkeypatch.setattr(data, name, SimpleNamespace(clear=partial(cleared.add, name)))
    data.forget()
    assert cleared == kept - {"_client", "_divide"}


def test_an_error_is_not_kept(client: FakeClient) -> None:
    client.error = Unavailable("away")
    with pytest.raises(Unavailable):
        data.clusters()
    client.error = None
    assert data.clusters().clusters


def test_budgets_are_kept_by_cluster_and_period(client: FakeClient) -> None:
    data.budget_vs_actual("alpha", "2026-01")
    data.budget_vs_actual("alpha", "2026-02")
    assert client.asked == [("alpha", "2026-01"), ("alpha", "2026-02")]


def test_the_api_is_where_the_settings_say() -> None:
    assert data.api_url().startswith("http")


def test_what_was_fetched_for_one_viewer_is_not_shown_to_another(client: FakeClient) -> None:
    first, last = dt.date(2026, 3, 1), dt.date(2026, 3, 2)
    data.layers("day", "alpha", first, last)
    data.sign_in(" gpl_a_b ")
    data.layers("day", "alpha", first, last)
    data.layers("day", "alpha", first, last)
    assert len(client.asked) == 2
    assert data.asker().token == "gpl_a_b"


def test_the_pages_may_have_a_token_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    monkeypatch.setattr(settings, "load", lambda: settings.Settings(api_token_file=file))
    with pytest.raises(Refused, match="GPULEDGER_API_TOKEN_FILE"):
        data.asker()
    file.write_text("gpl_a_b\nmade in May\n")
    assert data.asker().token == "gpl_a_b"
    data.sign_in("gpl_c_d")
    assert data.asker().token == "gpl_c_d"
