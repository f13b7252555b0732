"""Questions about trees, queues and series: what is sent, and what is made of the answer."""

import datetime as dt

import httpx2
from tests.unit.client.scripted import answering


def test_a_tree_has_parents_before_children() -> None:
    seen: list[httpx2.Request] = []
    tree = answering("getBalanceTree", seen).balance_tree("philly", period="2017-10")
    assert seen[0].url.raw_path == b"/v1/balance-trees/philly?period=2017-10"
    assert [(node.account, node.depth, node.is_leaf) for node in tree.nodes] == [
        ("philly", 0, False),
        ("philly/ee9e8c", 1, True),
    ]


def test_a_queue_is_asked_for_in_pages() -> None:
    seen: list[httpx2.Request] = []
    found = answering("getQueue", seen).queue("philly", account="philly/ee9e8c", after=1000)
    assert dict(seen[0].url.params) == {"cluster": "philly", "account": "philly/ee9e8c", "after": "1000"}
    assert [(row.position, row.action) for row in found.rows] == [(1, "start")]


def test_a_series_names_its_window() -> None:
    seen: list[httpx2.Request] = []
    found = answering("listOwed", seen).owed("philly", by="hour", from_=dt.date(2017, 10, 1))
    assert dict(seen[0].url.params) == {"cluster": "philly", "by": "hour", "from": "2017-10-01"}
    assert (found.from_, found.rows[0].owed_gpu_ms) == ("2017-10-01T00:00:00Z", 880 * 3_600_000)


def test_allocations_are_waited_for_after_a_cursor() -> None:
    seen: list[httpx2.Request] = []
    found = answering("getCurrentAllocations", seen).allocations("philly", after=8840, wait_s=5)
    assert dict(seen[0].url.params) == {"cluster": "philly", "after": "8840", "wait_s": "5"}
    assert found.cursor == 8841
