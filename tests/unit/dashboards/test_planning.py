"""The page of planning: another split of a node, its effect, and the proposal of it."""

import datetime as dt

import pytest
from tests.unit.dashboards.answers import HOUR
from tests.unit.dashboards.pages import PLANNING, FakeClient, run_page, text_of

from gpuledger.client.plans import Effect, ShareEffect, Wish
from gpuledger.client.records import Account
from gpuledger.kernel.errors import Conflict
from gpuledger_dashboards import planning


def account(path: str, share: int | None = None) -> Account:
    above, _, _ = path.rpartition("/")
    return Account(
        account=path, parent=above or None, is_leaf=True, created_seq=1, created_at="2026-12-01T00:00:00Z",
        share=share, overdraft=None, shares=(), overdrafts=(),
    )  # fmt: skip


TREE = (account("org"), account("org/vision", 3), account("org/speech"), account("org/vision/faces"))
EFFECT = Effect(
    period="2026-12",
    shares=(
        ShareEffect(
            cluster="alpha", account="org/vision/faces", before_ppm=750_000, after_ppm=500_000,
            before_gpu_ms=75 * HOUR, after_gpu_ms=50 * HOUR,
        ),
    ),
)  # fmt: skip


@pytest.fixture
def planner(client: FakeClient) -> FakeClient:
    client.tree, client.effect = TREE, EFFECT
    return client


def wishes(client: FakeClient) -> list[tuple[Wish, bool]]:
    return [asked for asked in client.asked if isinstance(asked[0], Wish)]  # type: ignore[misc]


def test_only_what_is_divided_can_be_divided_otherwise() -> None:
    nodes = planning.splits(TREE)
    assert {node: [one.account for one in below] for node, below in nodes.items()} == {
        "org": ["org/speech", "org/vision"]
    }
    two = (*TREE, account("lab"))
    assert planning.titles(planning.splits(two))[""] == "the organisation (2 accounts)"


def test_a_share_that_nobody_set_counts_as_one() -> None:
    before = planning.shares_of(planning.splits(TREE)["org"])
    assert before == {"org/speech": 1, "org/vision": 3}
    after = {"org/speech": 3, "org/vision": 3}
    assert planning.changed(before, after) == {"org/speech": 3}
    assert [list(row.values()) for row in planning.table(before, after)] == [
        ["org/speech", "1", "3", "25.0 %", "50.0 %"], ["org/vision", "3", "3", "75.0 %", "50.0 %"],
    ]  # fmt: skip
    assert planning.table({"a": 0}, {"a": 1})[0]["Part of it before"] == "none"


def test_nothing_is_asked_before_something_is_changed(planner: FakeClient) -> None:
    text = text_of(run_page(PLANNING))
    assert "Change a share to see what it would do." in text
    assert wishes(planner) == []


def test_a_changed_share_is_shown_with_its_effect_and_proposed(planner: FakeClient) -> None:
    app = run_page(PLANNING, node="org")
    app.number_input(key="share org org/speech").set_value(3).run()
    assert not app.exception
    assert "-25.0" in "".join(element.proto.body for element in app.get("html"))
    ((wish, dry),) = wishes(planner)
    assert (wish.shares, dry) == (({"account": "org/speech", "share": 3},), True)
    press = next(button for button in app.button if button.label == "Propose it")
    press.click().run()
    assert "Say why" in app.warning[0].value
    app.text_area[0].input("speech is late")
    app.date_input[0].set_value(dt.date(2026, 12, 15))
    next(button for button in app.button if button.label == "Propose it").click().run()
    assert not app.exception
    assert "p-000000000009" in app.success[0].value.replace("\\", "")
    wish, dry = wishes(planner)[-1]
    assert (wish.reason, wish.effective_at, wish.decide_by, dry) == (
        "speech is late", "2026-12-15T00:00:00Z", None, False,
    )  # fmt: skip


def test_a_refusal_is_told(planner: FakeClient) -> None:
    app = run_page(PLANNING)
    planner.refusal = Conflict("somebody was faster", hint="look again")
    app.number_input(key="share org org/speech").set_value(3).run()
    assert "somebody was faster" in app.warning[0].value
    app.text_area[0].input("speech is late")
    next(button for button in app.button if button.label == "Propose it").click().run()
    assert "look again" in app.error[0].value
    assert app.text_area[0].value == "speech is late"


def test_who_may_not_propose_sees_the_parts_alone(planner: FakeClient) -> None:
    planner.rights = ("read-accounts",)
    app = run_page(PLANNING)
    app.number_input(key="share org org/speech").set_value(3).run()
    assert "worked out for those who may propose it" in text_of(app)
    assert not app.text_area
    assert wishes(planner) == []


def test_no_tree_says_where_shares_come_from(client: FakeClient) -> None:
    assert "gpuledger budget apply" in text_of(run_page(PLANNING))


def test_the_command_holds_each_name_as_one_word() -> None:
    assert planning.command({"org/a b": 3}, "it's late") == (
        """gpuledger proposal make --share 'org/a b=3' --reason 'it'"'"'s late'"""
    )
