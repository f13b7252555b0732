"""Budget versus actual as a tree of accounts: sums of the leaves below, never a mean. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuledger.client.answers import BudgetRow
from gpuledger.kernel.accounts import lineage
from gpuledger_dashboards.figures import hours, share

CAUSES = {
    "variance_transfer_gpu_ms": "Transfers",
    "variance_expiry_gpu_ms": "Expiry",
    "variance_capacity_gpu_ms": "Capacity",
    "variance_demand_gpu_ms": "Demand",
    "variance_scheduler_gpu_ms": "Scheduler",
    "variance_credit_gpu_ms": "Credits",
}
"""Why delivered is not the budget; the causes sum to budget - delivered."""

CAUSES_IN_WORDS = {
    "Transfers": "given to other accounts, less what came from them",
    "Expiry": "not used before its date",
    "Capacity": "budgeted, but GPUs were missing or not healthy",
    "Demand": "the account had no work that could have used it",
    "Scheduler": "owed and not delivered (negative: more than was owed)",
    "Credits": "delivered, and given back after a fault",
}

NO_BUDGET = "none"
"""What stands where an account was never granted anything."""

_AMOUNTS = (
    "budget_gpu_ms",
    "transferred_gpu_ms",
    "charged_gpu_ms",
    "held_gpu_ms",
    "credited_gpu_ms",
    "expired_gpu_ms",
    "available_gpu_ms",
    "unallocated_gpu_ms",
    "entitlement_gpu_ms",
    "demand_gpu_ms",
    "owed_gpu_ms",
    "delivered_gpu_ms",
    *CAUSES,
)


@dataclass(frozen=True, slots=True)
class Node:
    """An account with the sums of the leaves below it.

    Args:
        account: Its path.
        depth: How far below the root.
        is_leaf: Whether it has rows of its own.
        amounts: Column -> sum in gpu_ms; None when any leaf below does not know it.
    """

    account: str
    depth: int
    is_leaf: bool
    amounts: Mapping[str, int | None]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.account.rpartition("/")[2]

    @property
    def is_over_budget(self) -> bool:
        """Whether it was charged more than it had; who was never granted anything has nothing to be over."""
        return self.has_budget and (self.amounts["available_gpu_ms"] or 0) < 0

    @property
    def has_budget(self) -> bool:
        """Whether anything was granted, or could have been: a share of known capacity may come to nothing."""
        return bool(self.amounts["budget_gpu_ms"]) or self.amounts["entitlement_gpu_ms"] is not None


def tree(rows: Sequence[BudgetRow]) -> list[Node]:
    """Return every account on the way to a row, parents before their children."""
    paths = {path for row in rows for path in lineage(row.account)}
    leaves = {row.account for row in rows}
    return [
        Node(
            path, path.count("/"), path in leaves, _sums(row for row in rows if _is_below(row.account, path))
        )
        for path in sorted(paths, key=lambda path: path.split("/"))
    ]


def _is_below(account: str, path: str) -> bool:
    return account == path or account.startswith(path + "/")


def _sums(rows: Iterable[BudgetRow]) -> dict[str, int | None]:
    found = list(rows)
    columns = {name: [getattr(row, name) for row in found] for name in _AMOUNTS}
    return {name: None if None in values else sum(values) for name, values in columns.items()}


def table(nodes: Sequence[Node]) -> list[dict[str, str]]:
    """Return the tree as people read it: names indented, amounts in GPU-hours."""
    return [
        {
            "Account": _indented(node),
            "Budget": hours(node.amounts["budget_gpu_ms"]) if node.has_budget else NO_BUDGET,
            "Charged": hours(node.amounts["charged_gpu_ms"]),
            "of budget": share(node.amounts["charged_gpu_ms"], node.amounts["budget_gpu_ms"] or None),
            "Held": hours(node.amounts["held_gpu_ms"]),
            "Available": hours(node.amounts["available_gpu_ms"]) if node.has_budget else NO_BUDGET,
            "Owed": hours(node.amounts["owed_gpu_ms"]),
            "Delivered": hours(node.amounts["delivered_gpu_ms"]),
            "Free use": hours(node.amounts["unallocated_gpu_ms"]),
        }
        for node in nodes
    ]


def variance_table(nodes: Sequence[Node]) -> list[dict[str, str]]:
    """Return budget less delivered of each account, and its causes."""
    return [
        {
            "Account": _indented(node),
            "Budget - delivered": hours(_difference(node)),
            **{title: hours(node.amounts[name]) for name, title in CAUSES.items()},
        }
        for node in nodes
    ]


def _difference(node: Node) -> int | None:
    delivered, budget = node.amounts["delivered_gpu_ms"], node.amounts["budget_gpu_ms"]
    return None if delivered is None or budget is None else budget - delivered


def _indented(node: Node) -> str:
    # Em spaces survive HTML; a mark says what a screen reader would otherwise not tell.
    mark = " (over budget)" if node.is_over_budget else ""
    return "\u2003" * node.depth + node.name + mark


@dataclass(frozen=True, slots=True)
class Bar:
    """One stretch of an account's bar, in GPU-hours from left to right."""

    account: str
    part: str
    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What an account was owed, as a mark on its bar."""

    account: str
    at: float
    text: str


PART_BUDGET, PART_CHARGED, PART_FREE = "Budget", "Charged", "Free use, not charged"


def leaves(nodes: Sequence[Node]) -> list[Node]:
    """Return the accounts that work is booked to, largest budget first."""
    found = [node for node in nodes if node.is_leaf]
    return sorted(found, key=lambda node: (-(node.amounts["budget_gpu_ms"] or 0), node.account))


def label(account: str) -> str:
    """Return an account's path without its root, which the page already names."""
    return account.partition("/")[2] or account


def bars(nodes: Sequence[Node]) -> tuple[list[Bar], list[Mark]]:
    """Return budget, charged and free use of each leaf as bars, and what it was owed as marks."""
    found, marks = [], []
    for node in leaves(nodes):
        name = label(node.account)
        budget, charged, free = (
            node.amounts[column] or 0 for column in ("budget_gpu_ms", "charged_gpu_ms", "unallocated_gpu_ms")
        )
        for part, start, amount in (
            (PART_BUDGET, 0, budget),
            (PART_CHARGED, 0, charged),
            (PART_FREE, charged, free),
        ):
            text = f"{part}: {hours(amount)} GPU-h"
            found.append(Bar(name, part, _chart_hours(start), _chart_hours(start + amount), text))
        owed = node.amounts["owed_gpu_ms"]
        if owed is not None:
            marks.append(Mark(name, _chart_hours(owed), f"Owed: {hours(owed)} GPU-h"))
    return found, marks


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of one account's variance, in GPU-hours."""

    account: str
    cause: str
    order: int
    value: float
    text: str


def causes(nodes: Sequence[Node]) -> list[Cause]:
    """Return the causes of each leaf whose causes are known and not zero."""
    return [
        Cause(label(node.account), title, order, _chart_hours(amount), f"{title}: {hours(amount)} GPU-h")
        for node in leaves(nodes)
        for order, (name, title) in enumerate(CAUSES.items())
        if (amount := node.amounts[name])
    ]


def summary(nodes: Sequence[Node]) -> str:
    """Return the answer at a glance: who is over budget, and how much was delivered of it."""
    roots = [node for node in nodes if node.depth == 0]
    budget = sum(node.amounts["budget_gpu_ms"] or 0 for node in roots)
    charged = sum(node.amounts["charged_gpu_ms"] or 0 for node in roots)
    every = leaves(nodes)
    over = [label(node.account) for node in every if node.is_over_budget]
    charged_words = (
        f"{hours(charged)} of {hours(budget)} budgeted GPU-h were charged ({share(charged, budget)})"
    )
    if not budget:
        charged_words = f"{hours(charged)} GPU-h were charged; no account has a budget"
    if not budget:
        return f"{charged_words}."
    if not over:
        return f"{charged_words}; none of {len(every)} accounts is over budget."
    names = ", ".join(over[:3]) + (f" and {len(over) - 3} more" if len(over) > 3 else "")  # noqa: PLR2004 - as many as one line holds
    verb = "is" if len(over) == 1 else "are"
    return f"{charged_words}; {len(over)} of {len(every)} accounts {verb} over budget: {names}."


def reason(rows: Sequence[BudgetRow]) -> str | None:
    """Return why entitlement, owed and delivered are unknown, if they are."""
    found = [row.reason for row in rows if row.reason]
    return found[0] if found else None


def csv_rows(rows: Sequence[BudgetRow]) -> list[dict[str, object]]:
    """Return the leaves for a download."""
    return [
        {
            "account": row.account,
            "cluster": row.cluster,
            "period": row.period,
            **{name: getattr(row, name) for name in _AMOUNTS},
        }
        for row in rows
    ]


def _chart_hours(gpu_ms: int) -> float:
    """Return GPU-hours as a chart takes them; no figure is computed from them."""
    return gpu_ms / 3_600_000
