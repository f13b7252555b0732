"""``topics``: what there is to be, and what there is."""

from tests.commands.fixtures import Ledger

from gpuledger.streams.topics import TOPICS

KEYS = {"topic", "holds", "key", "exists", "partitions", "records", "retention_days"}


def test_topics_are_listed_whether_they_exist_or_not(own_home: Ledger) -> None:
    """Without Kafka they are folders; no database is needed to ask."""
    topics = own_home.done("topics", "list")["topics"]
    assert [topic["topic"] for topic in topics] == list(TOPICS)
    assert all(topic.keys() == KEYS and not topic["exists"] for topic in topics)
    assert "none yet" in own_home("topics", "list").out


def test_topics_are_created_once(own_home: Ledger) -> None:
    first = own_home.done("topics", "create", "gpu.telemetry", "--partitions", 4, "--retention-days", 7)[
        "topics"
    ]
    assert [(t["topic"], t["created"], t["partitions"]) for t in first] == [("gpu.telemetry", True, 4)]
    every = own_home.done("topics", "create")["topics"]
    assert [t["created"] for t in every] == [topic != "gpu.telemetry" for topic in TOPICS]
    assert [t["partitions"] for t in every] == [4 if topic == "gpu.telemetry" else 1 for topic in TOPICS]
    assert "created" not in own_home("topics", "create").out


def test_a_topic_that_is_none_of_ours_is_not_created(own_home: Ledger) -> None:
    ran = own_home("topics", "create", "gpu.telemetri", "--json")
    assert (ran.status, ran.out) == (2, "")
    assert "gpu.telemetry" in ran.problem["hint"]
