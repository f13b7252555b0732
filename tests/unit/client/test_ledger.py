"""The client against a scripted API: what it sends and what it makes of answers."""

import datetime as dt
import json
from decimal import Decimal

import httpx2
from tests.unit.client.scripted import ORDER, answering, asked

from gpuledger.client import plans


def test_layers_are_typed_and_unknown_stays_none() -> None:
    seen: list[httpx2.Request] = []
    client = answering("listLayers", seen)
    answer = client.layers("day", cluster="philly", from_=dt.date(2017, 10, 1), to=dt.date(2017, 11, 1))
    assert answer.rows[0].availability == Decimal("0.9800")
    assert answer.rows[0].utilisation.value is None
    assert answer.from_ == "2017-10-01T00:00:00Z"
    assert dict(seen[0].url.params) == {
        "by": "day",
        "cluster": "philly",
        "from": "2017-10-01",
        "to": "2017-11-01",
    }


def test_every_path_has_a_method() -> None:
    assert answering("listClusters").clusters().clusters[0].cluster == "philly"
    assert answering("listBooks").books().dead_letters == 0
    assert answering("listBalances").balances(account="philly").balances[0].period == "2017-10"
    assert answering("getCurrentAllocations").allocations("philly").supply_gpus == 2490
    assert answering("getCurrentDirectives").directives("philly").starts[0].hosts == {"m12": 8000}
    assert answering("getBalanceTree").balance_tree("philly").nodes[1].depth == 1
    assert answering("getQueue").queue("philly").rows[0].ratios[1].ratio == "0.418300"
    assert answering("listOwed").owed("philly").rows[0].hours == 24
    assert answering("getUsage").usage("account").rows[0].gpu_hours == Decimal("900.000")
    assert answering("listMovements").movements("philly/ee9e8c").movements[0].code == "charge"
    assert answering("listMovements").movements("philly/ee9e8c").limits[0].gpu_ms == 360_000_000
    assert answering("listPeriods").periods(cluster="philly").periods[0].state == "open"
    assert answering("getBudgetVersusActual").budget_vs_actual().rows[0].variance_credit_gpu_ms == 0


def test_orders_are_asked_for_after_a_cursor_and_typed() -> None:
    seen: list[httpx2.Request] = []
    answer = answering("getCurrentDirectives", seen).directives("philly", after=8840, stale_after_s=60)
    assert dict(seen[0].url.params) == {"cluster": "philly", "after": "8840", "stale_after_s": "60"}
    assert (answer.cursor, answer.stale, answer.decided_at) == (8841, False, "2026-12-01T09:00:00Z")
    assert [(one.run, one.leave_by, one.ends) for one in answer.preemptions] == [
        ("1", "2026-12-01T09:01:00Z", False)
    ]
    assert [one.workload for one in answer.protected] == ["8802"]


def test_an_account_keeps_its_slashes_and_hides_its_marks() -> None:
    seen: list[httpx2.Request] = []
    client = answering("getBalance", seen)
    client.balance("philly/a%20b", period="2017-10")
    assert seen[0].url.raw_path == b"/v1/balances/philly/a%2520b?period=2017-10"


def test_orders_carry_a_key_of_their_own_unless_one_is_given() -> None:
    first, second = (asked("grant", lambda client: client.grant(ORDER)) for _ in range(2))
    assert json.loads(first.content) == {**ORDER._asdict()}
    keys = [request.headers["idempotency-key"] for request in (first, second)]
    assert len(set(keys)) == 2
    given = asked("transfer", lambda client: client.transfer(ORDER, "philly/b", key="k1", dry_run=True))
    assert given.headers["idempotency-key"] == "k1"
    assert json.loads(given.content)["to"] == "philly/b"
    assert str(given.url).endswith("/v1/budget/transfers?dry_run=true")


def test_events_go_as_lines_and_an_attempt_is_admitted() -> None:
    sent = asked("postEvents", lambda client: client.post_events([b'{"a": 1}', b"{}"]))
    assert (sent.content, sent.headers["content-type"]) == (b'{"a": 1}\n{}', "application/x-ndjson")
    assert answering("postEvents").post_events([]).repeated == 1
    admitted = answering("admit").admit("philly", "8851")
    assert (admitted.klass, admitted.protected_s) == ("allocated", 3600)
    assert answering("grant").grant(ORDER).seq == 8843
    assert answering("getWorkload").workload("a/b c", what_if=True).state == "waits"
    workload = asked("getWorkload", lambda client: client.workload("a/b c", what_if=True))
    assert workload.url.raw_path == b"/v1/workloads/a/b%20c?what_if=true"


def test_what_is_proposed_is_sent_under_its_keys() -> None:
    seen: list[httpx2.Request] = []
    wish = plans.Wish(reason="a deadline", shares=({"account": "org/a", "share": 3},))
    made = answering("propose", seen).propose(wish, key="k1", dry_run=True)
    assert (seen[0].url.path, dict(seen[0].url.params)) == ("/v1/proposals", {"dry_run": "true"})
    assert json.loads(seen[0].content) == {
        "reason": "a deadline",
        "shares": [{"account": "org/a", "share": 3}],
    }
    assert seen[0].headers["Idempotency-Key"] == "k1"
    assert made.effect is not None
    assert made.effect.shares[0].after_ppm == 150_000


def test_proposals_are_read_and_decided() -> None:
    seen: list[httpx2.Request] = []
    found = answering("listProposals", seen).proposals(state="pending", account="org/a", after=3)
    assert dict(seen[0].url.params) == {"state": "pending", "account": "org/a", "after": "3"}
    assert found.proposals[0].comments[0].by == "Dr. Wang"
    assert answering("getProposal").proposal("p-3f9a1c0b2d4e").state == "pending"
    for step in plans.Step:
        assert answering("approve", seen).say("p-3f9a1c0b2d4e", step, "fine").applied
        assert seen[-1].url.path == f"/v1/proposals/p-3f9a1c0b2d4e/{step.value}"
        assert json.loads(seen[-1].content) == {"reason": "fine"}


def test_a_tree_is_divided() -> None:
    seen: list[httpx2.Request] = []
    tree = plans.Tree(supply_milli=1000, accounts=(plans.Node(account="a", demand_milli=500),))
    assert answering("divide", seen).divide(tree).issued["a"] == "40"
    assert json.loads(seen[0].content) == {
        "supply_milli": 1000, "accounts": [{"account": "a", "demand_milli": 500}],
    }  # fmt: skip
