"""Roles, and what each may do. How far it reaches (accounts, clusters) stands in the token, not here."""

from enum import StrEnum


class Right(StrEnum):
    """What somebody may do through the API; each of its operations asks for one."""

    READ_CLUSTERS = "read-clusters"
    """Figures of whole clusters, which name no account: what there is, the four layers."""
    READ_ACCOUNTS = "read-accounts"
    """Balances, budgets, issues and use of accounts."""
    READ_WORK = "read-work"
    """Workloads, who submitted them, and what was decided about each."""
    READ_ORDERS = "read-orders"
    """What a cycle orders on a whole cluster, for the scheduler that carries it out."""
    READ_BOOKS = "read-books"
    """Chain heads, dead letters, metrics: how the ledger itself is."""
    READ_TOKENS = "read-tokens"
    """Who may ask the API: names, roles and scopes of its tokens, and when each was used last."""
    POST_EVENTS = "post-events"
    """Say what happened on a cluster."""
    ADMIT = "admit"
    """Have the class of an attempt decided, and GPU-time set aside for it."""
    READ_PROPOSALS = "read-proposals"
    """What is proposed for accounts, by whom, and what was said of it."""
    PROPOSE = "propose"
    """Ask for another budget, say something about it, and take it back."""
    CHANGE_BUDGETS = "change-budgets"
    """Grant and transfer GPU-time; approve or reject what was proposed."""


class Role(StrEnum):
    """Who somebody is to the ledger."""

    ADMIN = "admin"
    MANAGER = "manager"
    LEAD = "lead"
    RESEARCHER = "researcher"
    SCHEDULER = "scheduler"
    AUDITOR = "auditor"
    VIEWER = "viewer"


_READS_ACCOUNTS = frozenset({Right.READ_CLUSTERS, Right.READ_ACCOUNTS})
_READS_WORK = _READS_ACCOUNTS | {Right.READ_WORK}
_PROPOSES = _READS_WORK | {Right.READ_PROPOSALS, Right.PROPOSE}

RIGHTS: dict[Role, frozenset[Right]] = {
    Role.ADMIN: frozenset(Right),
    Role.MANAGER: _PROPOSES | {Right.CHANGE_BUDGETS},
    Role.LEAD: _PROPOSES | {Right.CHANGE_BUDGETS},
    Role.RESEARCHER: _PROPOSES,
    Role.SCHEDULER: _READS_WORK | {Right.READ_ORDERS, Right.POST_EVENTS, Right.ADMIT},
    Role.AUDITOR: _READS_WORK | {Right.READ_PROPOSALS, Right.READ_ORDERS, Right.READ_BOOKS},
    Role.VIEWER: _READS_ACCOUNTS,
}
"""Role -> its rights. Whoever may change something may see it."""

NEEDS_SUBTREE = frozenset({Role.MANAGER, Role.LEAD, Role.RESEARCHER})
"""Roles of a program or a team: without a subtree they would be roles of the whole organisation."""

NEEDS_CLUSTER = frozenset({Role.SCHEDULER})
"""A scheduler speaks for the clusters that it runs, and for no other."""
