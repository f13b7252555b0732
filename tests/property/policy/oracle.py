"""The policy said again, slowly and differently: nested dictionaries, plain searches, fractions throughout.

Shares no code with the product. A tree is ``{"name", "share", "demand", "used", "running", "children"}``,
some with a ``"limit"``; a leaf has no children.
"""

from fractions import Fraction
from typing import Any

Tree = dict[str, Any]


def wanted(tree: Tree) -> int:
    """What a subtree may be issued at most: the demand below shares above zero, within the limits."""
    asked = tree["demand"] if not tree["children"] else sum(wanted(c) for c in tree["children"] if c["share"])
    return min(asked, tree.get("limit", asked))


def issued(tree: Tree, amount: Fraction, path: str = "") -> dict[str, Fraction]:
    """Exact max-min: search the water level at which the children take the whole amount."""
    amount = min(amount, Fraction(wanted(tree)))
    result = {path: amount}
    level = water_level([(child["share"], wanted(child)) for child in tree["children"]], amount)
    for child in tree["children"]:
        part = min(level * child["share"], Fraction(wanted(child))) if child["share"] else Fraction(0)
        result.update(issued(child, part, below(path, child)))
    return result


def water_level(bowls: list[tuple[int, int]], amount: Fraction) -> Fraction:
    """The level L at which the sum of min(L x width, volume) is the amount; bowls are (width, volume).

    The sum is piecewise linear in L with a bend where a bowl is full: find the last bend that does not exceed
    the amount, then go on along the straight line from there.
    """

    def held(level: Fraction) -> Fraction:
        return sum((min(level * width, Fraction(volume)) for width, volume in bowls), Fraction(0))

    bends = [Fraction(0), *(Fraction(volume, width) for width, volume in bowls if width)]
    start = max(bend for bend in bends if held(bend) <= amount)
    slope = sum(width for width, volume in bowls if width and Fraction(volume, width) > start)
    return start + (amount - held(start)) / slope if slope else start


def below(path: str, child: Tree) -> str:
    return f"{path}/{child['name']}" if path else child["name"]


def queue_order(
    tree: Tree,
    workloads: list[dict[str, Any]],
    *,
    capacity: int,
    window_s: int,
    ahead_s: int,
    alpha: Fraction,
) -> list[str]:
    """Pick one funded workload at a time, computing every figure of every sibling anew for each pick."""
    left = list(workloads)
    placed: list[dict[str, Any]] = []

    def chosen(node: Tree, path: str, part: Fraction) -> dict[str, Any]:
        """Who would be served next below a node that has work."""
        if not node["children"]:
            mine = [w for w in left if w["account"] == path]
            return min(mine, key=lambda w: (-w["priority"], w["submitted"], w["id"]))
        whole = sum(child["share"] for child in node["children"])
        ranked = []
        for child in node["children"]:
            here = below(path, child)
            waiting = [w for w in left if inside(w["account"], here)]
            if not waiting:
                continue
            portion = part * child["share"] / whole
            following = chosen(child, here, portion)
            started = [w for w in placed if inside(w["account"], here)]
            used = total(child, "used") + sum(w["gpus"] * min(w["runtime"], ahead_s) for w in started)
            running = total(child, "running") + sum(w["gpus"] for w in started)
            entitled = of_window(child, portion, capacity * window_s) + portion * capacity * ahead_s
            present = portion * capacity
            low = running < (1 - alpha) * present and running + following["gpus"] <= present
            oldest = min(w["eligible"] for w in waiting)
            ranked.append(((not low, used / entitled, used - entitled, oldest, here), following))
        return min(ranked, key=lambda entry: entry[0])[1]

    while left:
        following = chosen(tree, "", Fraction(1))
        left.remove(following)
        placed.append(following)
    return [w["id"] for w in placed]


def inside(account: str, path: str) -> bool:
    return account == path or account.startswith(path + "/")


def of_window(tree: Tree, portion: Fraction, whole: int) -> Fraction:
    """What a subtree was entitled to: what its leaves say, else by the present shares."""
    if not tree["children"]:
        return Fraction(tree.get("entitled", portion * whole))
    shares = sum(child["share"] for child in tree["children"])
    parts = {child["name"]: portion * child["share"] / shares for child in tree["children"]}
    return sum((of_window(child, parts[child["name"]], whole) for child in tree["children"]), Fraction(0))


def inner(tree: Tree) -> list[Tree]:
    """The tree and every subtree that has children."""
    below_it = [found for child in tree["children"] for found in inner(child)]
    return [tree, *below_it] if tree["children"] else []


def total(tree: Tree, field: str) -> int:
    if not tree["children"]:
        return tree[field]
    return sum(total(child, field) for child in tree["children"])
