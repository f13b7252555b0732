"""What somebody orders, and says so in ``by`` and ``reason``: the facts that can name who ordered them."""

from typing import TypeGuard, get_args

from gpuledger.events import budget, closing, incident, proposal
from gpuledger.events.registry import Fact

Order = (
    budget.AccountCreated
    | budget.PolicyChanged
    | budget.ShareSet
    | budget.OverdraftSet
    | budget.Granted
    | budget.Transferred
    | budget.AdjustmentPosted
    | proposal.Proposed
    | proposal.Commented
    | proposal.Approved
    | proposal.Rejected
    | proposal.Withdrawn
    | closing.PeriodClosing
    | closing.PeriodReopened
    | incident.CreditReversed
)
"""Journalled with a token in place of the person, and what the person typed kept aside."""

_ORDERS: frozenset[type[Fact]] = frozenset(get_args(Order))


def is_order(fact: Fact) -> TypeGuard[Order]:
    """Tell whether a fact is an order. Every event is asked, and a union answers ten times as slowly."""
    return type(fact) in _ORDERS
