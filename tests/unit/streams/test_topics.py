"""Every topic has a plan, and the page of streams says the same."""

import re
from pathlib import Path

from gpuledger.streams.topics import PLANS, SCHEDULER_EVENTS, TELEMETRY, TOPICS


def test_every_topic_has_a_plan() -> None:
    assert tuple(PLANS) == TOPICS
    assert all(plan.holds and plan.key for plan in PLANS.values())


def test_what_is_partitioned_by_cluster_or_host_can_be_shared_among_workers() -> None:
    assert {topic for topic, plan in PLANS.items() if plan.partitions > 1} == {SCHEDULER_EVENTS, TELEMETRY}


def test_facts_that_everything_is_derived_from_are_kept_for_ever() -> None:
    assert PLANS[SCHEDULER_EVENTS].retention_days is None


def test_the_docs_say_what_a_topic_holds_and_how_long(repository: Path) -> None:
    page = (repository / "docs/kafka.md").read_text()
    table = re.findall(r"^\| `(gpu\.[a-z.-]+)` \| (.+?) \| (.+?) \| (\d+) \| (.+?) \|", page, re.MULTILINE)
    kept = {
        topic: f"{plan.retention_days} days" if plan.retention_days else "for ever"
        for topic, plan in PLANS.items()
    }
    assert table == [
        (topic, plan.holds, plan.key, str(plan.partitions), kept[topic]) for topic, plan in PLANS.items()
    ]
