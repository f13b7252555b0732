"""What every page does when there is nothing to show."""

from pathlib import Path

import pytest
from tests.unit.dashboards.answers import status
from tests.unit.dashboards.pages import BUDGET, PYRAMID, SHARES, WORK, FakeClient, run_page, text_of

from gpuledger.kernel.errors import Unavailable, Unidentified


@pytest.mark.parametrize("page", [PYRAMID, BUDGET, SHARES, WORK], ids=lambda page: page.stem)
def test_an_api_that_is_away_is_named_with_the_command(client: FakeClient, page: Path) -> None:
    client.error = Unavailable("the ledger API at http://x cannot be reached: refused")
    app = run_page(page)
    assert "gpuledger serve" in text_of(app)
    client.error = None
    app.button[0].click().run()
    assert not app.exception
    assert "gpuledger serve" not in text_of(app)


@pytest.mark.parametrize("page", [PYRAMID, BUDGET, SHARES, WORK], ids=lambda page: page.stem)
def test_an_empty_ledger_says_how_to_fill_it(client: FakeClient, page: Path) -> None:
    client.statuses = ()
    assert "gpuledger import" in text_of(run_page(page))


@pytest.mark.parametrize("page", [PYRAMID, BUDGET], ids=lambda page: page.stem)
def test_nothing_rolled_up_names_the_roll_up(client: FakeClient, page: Path) -> None:
    client.statuses = (status(rolled_up=False, periods=()),)
    assert "gpuledger rollup" in text_of(run_page(page))


@pytest.mark.parametrize("page", [PYRAMID, BUDGET, SHARES, WORK], ids=lambda page: page.stem)
def test_who_is_not_known_is_asked_for_a_token(client: FakeClient, page: Path) -> None:
    client.error = Unidentified("no token was sent")
    app = run_page(page)
    assert "Sign in" in text_of(app)
    assert not app.warning
    app.text_input[0].input("gpl_wrong")
    app.button[0].click().run()
    assert "did not open the door" in app.warning[0].value
    client.error = None
    app.text_input[0].input("gpl_right")
    app.button[0].click().run()
    assert not app.exception
    assert "Sign in" not in text_of(app)
    assert "gpl_" not in text_of(app)
