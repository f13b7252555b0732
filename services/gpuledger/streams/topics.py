"""The topics, by name. A typo fails the type checker."""

from typing import Literal

Topic = Literal[
    "gpu.scheduler.events",  # workload.*, host.*; keyed by cluster
    "gpu.budget.events",  # account.*, budget.*, policy.changed; keyed by cluster or ~org
    "gpu.telemetry",  # telemetry.sampled; keyed by host
    "gpu.allocations",  # allocation.issued, decision.made; keyed by cluster
    "gpu.dead-letters",  # what could not be read, with its position and reason
]

SCHEDULER_EVENTS: Topic = "gpu.scheduler.events"
BUDGET_EVENTS: Topic = "gpu.budget.events"
TELEMETRY: Topic = "gpu.telemetry"
ALLOCATIONS: Topic = "gpu.allocations"
DEAD_LETTERS: Topic = "gpu.dead-letters"

TOPICS: tuple[Topic, ...] = (SCHEDULER_EVENTS, BUDGET_EVENTS, TELEMETRY, ALLOCATIONS, DEAD_LETTERS)
