"""What somebody orders, and says so in ``by`` and ``reason``: the facts that can name who ordered them."""

from gpuledger.events import budget, closing, incident

Order = (
    budget.AccountCreated
    | budget.PolicyChanged
    | budget.ShareSet
    | budget.OverdraftSet
    | budget.Granted
    | budget.Transferred
    | budget.AdjustmentPosted
    | closing.PeriodClosing
    | closing.PeriodReopened
    | incident.CreditReversed
)
"""Journalled with a token in place of the person, and what the person typed kept aside."""
