"""Facts that only the ledger itself writes: rows of its books, and orders that are decided under a book's lock.

From a stream they would be taken for decided without having been: a hold that nobody checked, a close of a
period that goes on, a clock that runs ahead. Orders that a book takes as they come - accounts, shares,
overdraft, grants, transfers, policy data - are facts like any other.
"""

from gpuledger.events import budget, closing, decision, incident, proposal, telemetry, workload
from gpuledger.events.registry import Fact

OWN: dict[type[Fact], str] = {
    budget.AllocationIssued: "cycle",
    budget.AllocationAmended: "policy run",
    budget.AdjustmentPosted: "budget adjust",
    budget.PeriodOpened: "period open",
    budget.PolicyApplied: "policy-data apply",
    closing.LedgerRestated: "policy-data apply",
    closing.LedgerSettled: "close run",
    closing.LedgerTicked: "tick",
    closing.PeriodClosed: "close run",
    closing.PeriodClosing: "close run",
    closing.PeriodReopened: "close reopen",
    closing.PeriodSealed: "close run",
    decision.DecisionMade: "admit",
    incident.CreditGranted: "incident credit",
    incident.CreditReversed: "incident reverse",
    incident.CreditWithdrawn: "incident credit",
    incident.IncidentFound: "incident credit",
    proposal.Proposed: "proposal make",
    proposal.Commented: "proposal comment",
    proposal.Approved: "proposal approve",
    proposal.Rejected: "proposal reject",
    proposal.Withdrawn: "proposal withdraw",
    telemetry.Sealed: "tick",
    workload.PreemptionAnnounced: "cycle",
}
"""A class of facts -> the command that makes the ledger write one."""
