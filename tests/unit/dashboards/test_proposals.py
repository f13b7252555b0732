"""The page of proposals: what is asked for, what it would change, and who may answer."""

from typing import Any

import msgspec
import pytest
from tests.unit.dashboards.answers import HOUR
from tests.unit.dashboards.pages import PROPOSALS, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.plans import Effect, Proposal, Step
from gpuledger.kernel.errors import Conflict, Forbidden
from gpuledger_dashboards import proposals


def wish(name: str = "p-000000000001", **changes: Any) -> Proposal:  # noqa: ANN401
    told = msgspec.convert(EXAMPLES["listProposals"]["proposals"][0], Proposal)
    return msgspec.structs.replace(told, proposal=name, **changes)


MOVED = {
    "shares": (), "effect": None, "cluster": "alpha", "effective_at": None,
    "grants": ({"account": "org/a", "period": "2026-12", "gpu_ms": 5 * HOUR},),
    "transfers": ({"account": "org/a", "to": "org/b", "period": "2026-12", "gpu_ms": HOUR},),
}  # fmt: skip


def tables(client: FakeClient, **query: str) -> str:
    client.wishes = client.wishes or (wish(),)
    return "".join(element.proto.body for element in run_page(PROPOSALS, **query).get("html"))


def test_a_proposal_is_opened_with_its_effect_and_what_was_said(client: FakeClient) -> None:
    client.wishes = (wish(), wish("p-000000000002", by="Ada"))
    app = run_page(PROPOSALS, proposal="p-000000000002")
    text = text_of(app)
    assert "An answer is due 2026-12-08 00:00 UTC." in text
    assert "share 15 for philly/ee9e8c from 2026-12-15 00:00 UTC on" in text
    assert "gpuledger proposal show p-000000000002" in text
    shown = tables(client, proposal="p-000000000002")
    assert "+55,577.0" in shown
    assert "From the 15th on this is fine." in shown


def test_the_list_is_cut_to_a_state(client: FakeClient) -> None:
    client.wishes = (wish(), wish("p-000000000002", state="rejected"))
    assert "p-000000000002" not in tables(client)
    assert "p-000000000002" in tables(client, state="rejected")
    assert "p-000000000001" in tables(client, state="all")


def test_nothing_waits(client: FakeClient) -> None:
    text = text_of(run_page(PROPOSALS))
    assert "Nobody waits for an answer." in text
    assert "gpuledger proposal make" in text


def test_the_reader_answers_with_a_reason(client: FakeClient) -> None:
    client.wishes = (wish(),)
    app = run_page(PROPOSALS)
    pressed = next(button for button in app.button if button.label == "Approve")
    pressed.click().run()
    assert "Say why" in app.warning[0].value
    app.text_area[0].input("as discussed")
    next(button for button in app.button if button.label == "Approve").click().run()
    assert not app.exception
    assert client.asked[-1] == ("p-000000000001", Step.APPROVE, "as discussed")
    assert not app.text_area[0].value, "what is said next is said anew"


@pytest.mark.parametrize(
    "refusal", [Conflict("it was approved already", hint="look"), Forbidden("not yours")]
)
def test_a_refusal_is_told_and_nothing_is_lost(client: FakeClient, refusal: Conflict | Forbidden) -> None:
    client.wishes, client.refusal = (wish(),), refusal
    app = run_page(PROPOSALS)
    app.text_area[0].input("no")
    next(button for button in app.button if button.label == "Reject").click().run()
    assert refusal.message in app.error[0].value
    assert app.text_area[0].value == "no"


@pytest.mark.parametrize(
    ("state", "rights", "name", "steps"),
    [
        ("pending", ("propose", "change-budgets"), "Dr. Wang", [Step.COMMENT, Step.APPROVE, Step.REJECT]),
        ("pending", ("propose",), "Prof. Lin", [Step.COMMENT, Step.WITHDRAW]),
        ("pending", ("propose",), "Dr. Wang", [Step.COMMENT]),
        ("pending", (), "an auditor", []),
        ("approved", ("propose", "change-budgets"), "Prof. Lin", [Step.COMMENT]),
    ],
)
def test_who_may_say_what(state: str, rights: tuple[str, ...], name: str, steps: list[Step]) -> None:
    assert proposals.may_say(wish(state=state), rights, name) == steps


def test_an_auditor_gets_no_form(client: FakeClient) -> None:
    client.wishes, client.rights = (wish(),), ("read-proposals",)
    app = run_page(PROPOSALS)
    assert not app.text_area


def test_gpu_time_is_told_with_both_ends(client: FakeClient) -> None:
    one = wish(**MOVED)
    assert proposals.changes(one) == [
        "5.0 GPU-h of alpha in 2026-12 for org/a", "1.0 GPU-h of alpha in 2026-12 from org/a to org/b",
    ]  # fmt: skip
    effect = msgspec.convert(
        {
            "budgets": [
                {"account": "org/a", "period": "2026-12", "added_gpu_ms": -HOUR, "available_gpu_ms": None}
            ]
        },
        Effect,
    )
    assert proposals.effect_on_budgets(effect) == [
        {"Account": "org/a", "Period": "2026-12", "Left before, GPU-h": "unknown", "Change": "-1.0"}
    ]
    client.wishes = (msgspec.structs.replace(one, effect=effect),)
    assert "As the books stood when it was proposed." in text_of(run_page(PROPOSALS))


def test_a_simulation_is_shown_with_what_it_does_not_know(client: FakeClient) -> None:
    account = {
        "account": "org/a", "before_gpu_ms": HOUR, "after_gpu_ms": 2 * HOUR, "before_wait_p90_s": 5400,
        "after_wait_p90_s": None,
    }  # fmt: skip
    told = {"scenario": "institute", "seed": 7, "days": 30, "accounts": [account]}
    (row,) = proposals.simulated(told)
    assert list(row.values()) == ["org/a", "1.0", "2.0", "1.5 h", "unknown"]
    assert proposals.simulated({"accounts": [{**account, "after_wait_p90_s": 90}]})[0]["after"] == "2 min"
    client.wishes = (wish(simulation=told),)
    assert "scenario institute · 30 days · as run by Prof. Lin" in text_of(run_page(PROPOSALS))


def test_an_end_is_told_with_who_and_why() -> None:
    said = msgspec.convert(
        {"at": "2026-12-02T09:00:00Z", "by": "Dr. Wang", "text": "fine"}, type(wish().comments[0])
    )
    one = wish(state="approved", decided=said)
    assert proposals.headline(one) == "Approved by Dr. Wang, 2026-12-02 09:00 UTC: fine"
    assert proposals.said(one)[-1]["What"] == "approved: fine"
    assert proposals.headline(wish(overdue=True)) == "An answer was due 2026-12-08 00:00 UTC."
    assert proposals.headline(wish(decide_by=None)) == "It waits for an answer."
    assert proposals.table([wish(overdue=True)])[0]["State"] == "pending (overdue)"
    assert proposals.csv_rows([one])[0]["decided_by"] == "Dr. Wang"
