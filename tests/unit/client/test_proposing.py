"""What is proposed travels under the keys of the document."""

import json

from gpuledger.client import plans
from gpuledger.client.proposing import divide, proposals, propose, say


def test_a_wish_leaves_out_what_it_does_not_say() -> None:
    ask = propose(plans.Wish(reason="why", shares=({"account": "a", "share": 2},)), key="k", dry_run=True)
    assert json.loads(ask.content or b"") == {"reason": "why", "shares": [{"account": "a", "share": 2}]}
    assert (ask.path, ask.params, ask.headers["Idempotency-Key"]) == (
        "/v1/proposals",
        {"dry_run": "true"},
        "k",
    )


def test_each_step_has_its_own_path() -> None:
    paths = {say("p-1", step, "why").path for step in plans.Step}
    assert paths == {f"/v1/proposals/p-1/{step.value}" for step in plans.Step}


def test_lists_and_trees_are_asked_for_as_they_are_told() -> None:
    assert proposals(state="open", after=20).params == {"state": "open", "after": "20"}
    tree = plans.Tree(supply_milli=1000, accounts=(plans.Node(account="a"),))
    assert json.loads(divide(tree).content or b"")["accounts"][0]["account"] == "a"
