"""Who looks at the pages: by an address of the demo, as somebody else, and out again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tests.unit.dashboards.pages import FakeClient, run_page

from gpuledger import settings
from gpuledger.kernel.errors import Unavailable
from gpuledger_dashboards import data, run

PEOPLE = [
    {"key": key, "name": name, "about": "somebody", "attempt": "look around", "token": f"gpl_{key}"}
    for key, name in (("maya", "Maya L."), ("omar", "Omar H."))
]


@pytest.fixture(autouse=True)
def _demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    file = tmp_path / "people.json"
    file.write_text(json.dumps(PEOPLE))
    monkeypatch.setenv("GPULEDGER_DEMO_PEOPLE", str(file))
    settings.load.cache_clear()
    yield
    settings.load.cache_clear()


def token(app: AppTest) -> str | None:
    return app.session_state.get(data.SIGNED_IN, None)


def test_an_address_signs_in_whom_it_names(client: FakeClient) -> None:
    app = run_page(Path(run.APP), as_="maya")
    assert token(app) == "gpl_maya"
    assert "manager of org on every cluster" in [text.value for text in app.markdown]


def test_a_name_that_is_nobodys_signs_in_nobody(client: FakeClient) -> None:
    assert token(run_page(Path(run.APP), as_="mallory")) is None


def test_somebody_else_is_a_click_away_and_so_is_the_way_out(client: FakeClient) -> None:
    app = run_page(Path(run.APP), as_="maya")
    app.button(key="as-omar").click().run()
    assert token(app) == "gpl_omar"
    assert app.query_params["as"] == "omar"
    next(button for button in app.button if button.label == "Sign out").click().run()
    assert token(app) is None
    assert "as" not in app.query_params
    app.run()
    assert token(app) is None, "who signed out stays so"


def test_a_ledger_of_your_own_shows_no_door(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPULEDGER_DEMO_PEOPLE")
    settings.load.cache_clear()
    app = run_page(Path(run.APP), as_="maya")
    assert token(app) is None
    assert not [button for button in app.button if button.label == "Sign out"]


def test_a_door_to_an_api_that_is_away_does_not_stop_the_page(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise Unavailable("the API at x cannot be reached")

    monkeypatch.setattr(client, "me", away)
    client.error = Unavailable("the API at x cannot be reached")
    app = run_page(Path(run.APP), as_="maya")
    assert [title.value for title in app.title] == ["Overview"]
