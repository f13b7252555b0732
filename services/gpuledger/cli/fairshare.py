"""``gpuledger fairshare``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.applying import read_file
from gpuledger.cli.options import Json
from gpuledger.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuledger.cli.fairshare_file import Quanta, Question
    from gpuledger.policy.calculator import Division, Quantum


def fairshare(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Supply and accounts (YAML); see docs/fairness.md.")
    ],
    as_json: Json = False,
) -> None:
    """Divide GPUs among the accounts of a file, and order them: the policy, without a ledger."""
    from gpuledger.cli import fairshare_file
    from gpuledger.policy.calculator import divide_by_hand, rank_by_hand
    from gpuledger.policy.explain import ratio_text
    from gpuledger.policy.words import gpus_text

    question = read_file(path, fairshare_file.read)
    if question.quanta is not None:
        _divide_by_credits(question, question.quanta, as_json=as_json)
        return
    division = divide_by_hand(
        question.accounts, supply_milli=question.supply_milli, window_gpu_ms=question.window_gpu_ms
    )
    order, factors = division.order, dict[str, str | None]()
    if question.fair_tree:
        users = rank_by_hand(division.tree, question.transparent)
        order = tuple(user.path for user in users)
        factors = {user.path: ratio_text(*user.factor.as_integer_ratio()) for user in users}
    if as_json:
        print_json(
            {
                "issued": {account: gpus_text(gpus) for account, gpus in division.issue.issued_milli.items()},
                "order": order,
                "idle": gpus_text(division.issue.idle_milli),
            }
            | ({"factors": factors} if question.fair_tree else {})
        )
    else:
        print_division(division, order, factors, supply_milli=question.supply_milli)


def _divide_by_credits(question: "Question", asked: "Quanta", *, as_json: bool) -> None:
    from gpuledger.kernel.amounts import GPU_MILLI
    from gpuledger.policy.calculator import divide_by_hand, play_by_hand
    from gpuledger.policy.credits import order_by_credits
    from gpuledger.policy.words import gpus_text

    played = play_by_hand(
        question.accounts,
        asked.demands_milli,
        supply_milli=question.supply_milli,
        start=asked.start,
        shared_permille=asked.shared_permille,
    )
    tree = divide_by_hand(question.accounts, supply_milli=question.supply_milli).tree
    last = played[-1]
    if as_json:
        quanta = [
            {
                "issued": {path: gpus_text(gpus) for path, gpus in quantum.issue.issued_milli.items()},
                "idle": gpus_text(quantum.issue.idle_milli),
                "credits": {
                    path: gpus_text(round(left * GPU_MILLI)) for path, left in quantum.credits.items()
                },
            }
            for quantum in played
        ]
        order = order_by_credits(tree, last.credits)
        print_json(
            {"issued": quanta[-1]["issued"], "order": order, "idle": quanta[-1]["idle"], "quanta": quanta}
        )
        return

    def gpus(quantum: "Quantum", path: str) -> int:
        return quantum.issue.issued_milli.get(path, 0)  # a ~own child is there only while it asks

    rows = [
        (path, *(gpus_text(gpus(quantum, path)) for quantum in played),
         gpus_text(sum(gpus(quantum, path) for quantum in played)), gpus_text(round(left * GPU_MILLI)))
        for path, left in last.credits.items()
    ]  # fmt: skip
    columns = ["account", *(f">{number}" for number in range(1, len(played) + 1)), ">sum", ">credits"]
    print_table(
        columns, rows, title=f"{gpus_text(question.supply_milli)} GPUs in each of {len(played)} quanta"
    )


def print_division(
    division: "Division", order: "Sequence[str]", factors: "Mapping[str, str | None]", *, supply_milli: int
) -> None:
    """Print the tree, a line for each account, children under their parent.

    Args:
        division: Sums, and what was issued.
        order: The leaves, next to be served first.
        factors: What Fair Tree gives each leaf; without any, the ratio of the policy's own order is shown.
        supply_milli: What was divided.
    """
    from gpuledger.kernel.accounts import SEPARATOR
    from gpuledger.kernel.amounts import people_gpu_hours
    from gpuledger.policy.explain import ratio_text
    from gpuledger.policy.words import gpus_text

    places = {account: place for place, account in enumerate(order, start=1)}
    ratios = factors or {node.path: ratio_text(*node.ratio) for node in division.tree.nodes.values()}
    rows = [
        (
            "  " * node.path.count(SEPARATOR) + node.path.rpartition(SEPARATOR)[2],
            f"{node.share_ppm / 10_000:.2f} %",
            gpus_text(node.demand_milli),
            "-" if node.limit_milli is None else gpus_text(node.limit_milli),
            people_gpu_hours(node.used_gpu_ms),
            people_gpu_hours(int(node.entitled)),
            ratios.get(node.path) or "-",
            gpus_text(division.issue.issued_milli[node.path]),
            places.get(node.path, ""),
        )
        for node in division.tree.nodes.values()
    ]
    columns = [
        "account", ">share", ">demand", ">limit", ">used GPU-h", ">entitled GPU-h",
        ">factor" if factors else ">ratio", ">issued", ">next",
    ]  # fmt: skip
    idle = division.issue.idle_milli
    print_table(columns, rows, title=f"{gpus_text(supply_milli)} GPUs, of which {gpus_text(idle)} idle")
