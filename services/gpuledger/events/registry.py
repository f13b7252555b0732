"""The closed set of facts: which type name is read into which class."""

import msgspec

from gpuledger.events import (
    budget,
    closing,
    decision,
    heartbeat,
    host,
    incident,
    proposal,
    telemetry,
    workload,
)

Fact = msgspec.Struct
"""Any of the classes below."""

_FACTS: dict[str, type[Fact]] = {
    "workload.submitted": workload.Submitted,
    "workload.updated": workload.Updated,
    "workload.started": workload.Started,
    "workload.resized": workload.Resized,
    "workload.suspended": workload.Suspended,
    "workload.resumed": workload.Resumed,
    "workload.class_changed": workload.ClassChanged,
    "workload.ready": workload.Ready,
    "workload.checkpointed": workload.Checkpointed,
    "workload.located": workload.Located,
    "workload.preempted": workload.Preempted,
    "workload.preemption_announced": workload.PreemptionAnnounced,
    "workload.requeued": workload.Requeued,
    "workload.ended": workload.Ended,
    "host.registered": host.Registered,
    "host.state_changed": host.StateChanged,
    "host.retired": host.Retired,
    "source.heartbeat": heartbeat.Heartbeat,
    "health.observed": host.HealthObserved,
    "telemetry.sampled": telemetry.Sampled,
    "telemetry.sealed": telemetry.Sealed,
    "account.created": budget.AccountCreated,
    "policy.changed": budget.PolicyChanged,
    "policy.applied": budget.PolicyApplied,
    "budget.share_set": budget.ShareSet,
    "budget.overdraft_set": budget.OverdraftSet,
    "budget.granted": budget.Granted,
    "budget.transferred": budget.Transferred,
    "budget.proposed": proposal.Proposed,
    "budget.commented": proposal.Commented,
    "budget.approved": proposal.Approved,
    "budget.rejected": proposal.Rejected,
    "budget.withdrawn": proposal.Withdrawn,
    "adjustment.posted": budget.AdjustmentPosted,
    "period.opened": budget.PeriodOpened,
    "period.closing": closing.PeriodClosing,
    "period.closed": closing.PeriodClosed,
    "period.sealed": closing.PeriodSealed,
    "period.reopened": closing.PeriodReopened,
    "ledger.ticked": closing.LedgerTicked,
    "ledger.settled": closing.LedgerSettled,
    "ledger.restated": closing.LedgerRestated,
    "decision.made": decision.DecisionMade,
    "incident.found": incident.IncidentFound,
    "credit.granted": incident.CreditGranted,
    "credit.reversed": incident.CreditReversed,
    "credit.withdrawn": incident.CreditWithdrawn,
    "allocation.issued": budget.AllocationIssued,
    "allocation.amended": budget.AllocationAmended,
}
_NAMES = {fact: name for name, fact in _FACTS.items()}


def fact_type(name: str) -> type[Fact] | None:
    """Return the class that reads a type name, or None when the name is unknown."""
    return _FACTS.get(name)


def name_of(fact: type[Fact]) -> str:
    """Return the type name of a class of facts."""
    return _NAMES[fact]


def names() -> list[str]:
    """Return every known type name, sorted."""
    return sorted(_FACTS)
