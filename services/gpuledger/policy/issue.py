"""Issue: how many GPUs each account gets now, by weighted max-min over the tree.

Nobody is given more than asked. What a child leaves goes to its siblings in proportion to their weights, and
only what no sibling wants goes up. The weight of an account is its share; with history it is

    max(kappa x share, share + lag / horizon)

where share is the part of the siblings' shares, and lag is how far the account fell behind its siblings, over
the parent's present capacity: what would have been its own of all that the siblings used, by what each was entitled
to, less what it used. A department that is over-served as a whole therefore still corrects between its own children,
and a correction is as strong ten levels down as at the top. A share that changes moves no lag: past use is held
against what was entitled then. Lags of siblings sum to zero.

Amounts are exact fractions until they are rounded once, at the end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import Refused
from gpuledger.policy.state import PER_MILLE, PolicyConfig
from gpuledger.policy.tree import NOTHING, ROOT, Node, Tree, round_exactly


@dataclass(frozen=True, slots=True)
class Issue:
    """What was issued.

    Args:
        issued_milli: Milli-GPU by path, inner nodes included; siblings sum to their parent.
        idle_milli: Supply that no account with a share asked for within its limits.
    """

    issued_milli: Mapping[str, int]
    idle_milli: int


def issue(tree: Tree, *, supply_milli: int, config: PolicyConfig) -> Issue:
    """Divide the supply by share and history.

    Raises:
        Refused: When the supply is negative.
    """
    return round_issue(tree, supply_milli, divide(tree, supply_milli, lag_weights(tree, config)))


def issue_without_history(tree: Tree, *, supply_milli: int) -> Issue:
    """Divide the supply by share alone: the division that other schedulers' tables state.

    Raises:
        Refused: When the supply is negative.
    """
    return round_issue(tree, supply_milli, divide(tree, supply_milli, share_weights(tree)))


def round_issue(tree: Tree, supply_milli: int, exact: Mapping[str, Fraction]) -> Issue:
    """Round exact amounts to units of ``unit_milli``."""
    issued = round_exactly(tree, exact, unit=unit_milli(tree, supply_milli))
    return Issue(issued, supply_milli - issued.pop(ROOT))


def unit_milli(tree: Tree, supply_milli: int) -> int:
    """Return in what units GPUs are issued: whole ones where supply, demands and limits are whole, else milli-GPU."""
    limits = [node.limit_milli for node in tree.nodes.values() if node.limit_milli is not None]
    amounts = [supply_milli, *limits, *(leaf.demand_milli for leaf in tree.leaves())]
    return GPU_MILLI if all(amount % GPU_MILLI == 0 for amount in amounts) else 1


def divide(tree: Tree, supply_milli: int, weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the exact weighted max-min amounts by path, the virtual root's included.

    Args:
        tree: The tree; ``issuable_milli`` is what each node may get at most.
        supply_milli: What there is to divide.
        weights: Weight by path; only proportions between siblings matter. Weight 0 gets nothing.

    Raises:
        Refused: When the supply is negative.
    """
    if supply_milli < 0:
        raise Refused(f"a supply of {supply_milli} milli-GPU cannot be issued")
    amounts = {ROOT: Fraction(min(supply_milli, tree.root.issuable_milli))}
    for node in tree.inner_nodes():
        amounts.update(_fill(node.children, amounts[node.path], weights))
    return amounts


def share_weights(tree: Tree) -> dict[str, Fraction]:
    """Return the weights of a division without history: the shares."""
    return {node.path: Fraction(node.share) for node in tree.nodes.values()}


def lag_weights(tree: Tree, config: PolicyConfig) -> dict[str, Fraction]:
    """Return the weights of a division with history (the formula at the top of this module)."""
    weights: dict[str, Fraction] = {}
    for parent in tree.inner_nodes():
        horizon_gpu_ms = parent.portion * tree.shared_milli * config.horizon_s
        live = [child for child in parent.children if child.share]
        whole = sum(child.share for child in live)
        entitled = sum((child.entitled - child.par_gpu_ms for child in live), NOTHING)
        used_gpu_ms = sum(child.used_gpu_ms - child.par_gpu_ms for child in live)
        for child in parent.children:
            if not child.share:
                weights[child.path] = NOTHING
                continue
            share = Fraction(child.share, whole)
            part = (child.entitled - child.par_gpu_ms) / entitled if entitled else share
            lag = part * used_gpu_ms - (child.used_gpu_ms - child.par_gpu_ms)
            caught_up = share + lag / horizon_gpu_ms if horizon_gpu_ms else share
            weights[child.path] = max(share * config.issue_kappa_permille / PER_MILLE, caught_up)
    return weights


def _fill(siblings: Iterable[Node], amount: Fraction, weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Divide what a parent got among its children.

    Children are met in the order in which a rising water level would satisfy them. As soon as one of them
    wants more than its part of what is left, so do all that follow, and the rest is divided by weight.
    """
    filled = {child.path: NOTHING for child in siblings}
    wanting = [child for child in siblings if weights[child.path] and child.issuable_milli]
    wanting.sort(key=lambda child: (child.issuable_milli / weights[child.path], child.path))
    weight_left = sum((weights[child.path] for child in wanting), NOTHING)
    for child in wanting:
        weight = weights[child.path]
        filled[child.path] = min(Fraction(child.issuable_milli), amount * weight / weight_left)
        amount -= filled[child.path]
        weight_left -= weight
    return filled
