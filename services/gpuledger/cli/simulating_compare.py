"""``gpuledger simulate compare``: one workload under two budgets."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuledger.cli.options import Json
from gpuledger.cli.output import print_json, print_table, progress
from gpuledger.cli.simulating import Days, OneWorld, ScenarioName, Seed, one_world, since

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuledger.simulator.comparison import Comparison, Pair
    from gpuledger.simulator.scenario import AccountSpec, Scenario

Budget = Annotated[
    str,
    typer.Argument(help="A budget file, or a scenario whose accounts are meant; what it leaves out stays."),
]


def compare(
    scenario: ScenarioName,
    budget_a: Budget,
    budget_b: Budget,
    world: OneWorld = "gpuledger",
    seed: Seed = None,
    days: Days = None,
    as_json: Json = False,
) -> None:
    """Run one workload under two budgets: who waits longer, who gets less, and by how much."""
    import msgspec

    from gpuledger.simulator.comparison import compare as compare_reports
    from gpuledger.simulator.playing import Play, prepare, run_prepared

    name = one_world(world)
    told = prepare(Play(scenario=scenario, world=name, seed=seed, days=days))
    budgets = [accounts_of(budget, told) for budget in (budget_a, budget_b)]
    reports = []
    for label, accounts in zip("AB", budgets, strict=True):
        with progress(f"simulate {told.name}, budget {label}", told.end_s - told.start_s) as advance:
            under = replace(told, accounts=accounts)
            reports.append(run_prepared(under, name, watch=since(told.start_s, advance)))
    found = compare_reports(reports[0], reports[1], budgets[0], budgets[1])
    if as_json:
        of = {
            "scenario": told.name,
            "world": name,
            "seed": told.seed,
            "days": told.days,
            "a": budget_a,
            "b": budget_b,
        }
        print_json({**of, **msgspec.to_builtins(found)})
    else:
        _print(found, f"{told.name}, {name}: A is {budget_a}, B is {budget_b}")


def accounts_of(budget: str, scenario: "Scenario") -> "tuple[AccountSpec, ...]":
    """Return the program tree of a scenario with the shares of a budget.

    Args:
        budget: The path of a budget file, or the name or path of another scenario.
        scenario: What is simulated; accounts that the budget leaves out keep their shares.

    Raises:
        Refused: When there is neither, or the file is neither a budget nor a scenario.
    """
    from gpuledger.ingest import budget_file
    from gpuledger.kernel.errors import Refused
    from gpuledger.simulator.comparison import with_shares
    from gpuledger.simulator.playing import found
    from gpuledger.simulator.scenario_file import scenario_names

    if budget in scenario_names() or not Path(budget).is_file():
        return found(budget).accounts
    try:
        shares = {path: account.share for path, account in budget_file.read(Path(budget)).accounts.items()}
    except Refused as no_budget:
        try:
            return found(budget).accounts
        except Refused:
            raise no_budget from None
    return with_shares(scenario.accounts, shares)


def _print(found: "Comparison", title: str) -> None:
    from gpuledger.simulator.glance import part_text

    rows = [
        (
            row.account,
            _pair(row.part, part_text),
            *(f"{round(value or 0):,}" for value in (row.gpu_hours.a, row.gpu_hours.b, row.gpu_hours.change)),
            _pair(row.window, part_text),
            _pair(row.wait_p50_s, _length),
            _pair(row.wait_p90_s, _length),
        )
        for row in found.accounts
    ]
    columns = [
        "account",
        ">part",
        ">GPU-h A",
        ">GPU-h B",
        ">change",
        ">delivered / owed",
        ">wait p50",
        ">wait p90",
    ]
    print_table(columns, rows, title=title)
    groups = [
        (row.group, _pair(row.wait_p50_s, _length), _pair(row.wait_p90_s, _length)) for row in found.groups
    ]
    print_table(["group", ">wait p50", ">wait p90"], groups)
    print_changes(found, "B")


def print_changes(found: "Comparison", b: str) -> None:
    """Print who gets less and who waits longer under the second of two."""
    of = {row.account: row for row in found.accounts}
    less = [f"{path} ({-(of[path].gpu_hours.change or 0):,.1f} GPU-h)" for path in found.gets_less]
    longer = [f"{path} ({_more(of[path].wait_p90_s)})" for path in found.waits_longer]
    print(f"gets less under {b}: {', '.join(less) or 'nobody'}")
    print(f"waits longer under {b} (p90): {', '.join(longer) or 'nobody'}")


def _more(wait: "Pair") -> str:
    return "not reached any more" if wait.change is None else _length(wait.change)


def _pair(pair: "Pair", text: "Callable[[float | None], str]") -> str:
    return f"{text(pair.a)} → {text(pair.b)}"


def _length(length: float | None) -> str:
    from gpuledger.policy.words import duration

    return "-" if length is None else duration(int(length))
