"""The topics: by name, so that a typo fails the type checker, and how each is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Topic = Literal[
    "gpu.scheduler.events",
    "gpu.budget.events",
    "gpu.telemetry",
    "gpu.allocations",
    "gpu.dead-letters",
]

SCHEDULER_EVENTS: Topic = "gpu.scheduler.events"
BUDGET_EVENTS: Topic = "gpu.budget.events"
TELEMETRY: Topic = "gpu.telemetry"
ALLOCATIONS: Topic = "gpu.allocations"
DEAD_LETTERS: Topic = "gpu.dead-letters"

TOPICS: tuple[Topic, ...] = (SCHEDULER_EVENTS, BUDGET_EVENTS, TELEMETRY, ALLOCATIONS, DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a topic is made. One that exists keeps what it has.

    Args:
        holds: What its messages say.
        key: What equal keys share: a partition, and in it their order.
        partitions: Among how many workers it can be shared. File streams have one reader, and one partition.
        retention_days: How long a message is kept; None for ever.
    """

    holds: str = ""
    key: str = ""
    partitions: int = 1
    retention_days: int | None = None


PLANS: Mapping[Topic, Plan] = {
    # Facts from which everything can be derived anew are deleted by decision, never by the age that is a default.
    SCHEDULER_EVENTS: Plan("workload.*, host.*", "cluster", partitions=8),
    BUDGET_EVENTS: Plan("account.*, budget.*, policy.changed", "cluster, or ~org"),
    # Samples are many, and what they add up to is sealed into the books each hour.
    TELEMETRY: Plan("telemetry.sampled, one a host and interval", "host", partitions=8, retention_days=30),
    ALLOCATIONS: Plan("allocation.issued, allocation.amended, decision.made", "cluster", retention_days=30),
    # Notes: the letters themselves stay in the database.
    DEAD_LETTERS: Plan("what could not be read: position, code, reason", "stream", retention_days=90),
}


@dataclass(frozen=True, slots=True)
class Described:
    """A topic as the broker has it.

    Args:
        partitions: How many; 0 when there is no such topic.
        records: How many records it holds.
        retention_days: How long a message is kept; None for ever.
    """

    topic: Topic
    partitions: int = 0
    records: int = 0
    retention_days: int | None = None
