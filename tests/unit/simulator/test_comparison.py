"""Two budgets on one workload."""

import msgspec
from tests.unit.simulator.stories import HOUR_S, in_order, left, scenario, started, submitted

from gpuledger.simulator.comparison import compare, with_shares
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.facts import Fact
from gpuledger.simulator.measures import measure
from gpuledger.simulator.scenario import AccountSpec
from gpuledger.simulator.summary import summarise

A = (AccountSpec(account="org/a", share=1, team_limit_milli=8000), AccountSpec(account="org/b", share=1))
B = (AccountSpec(account="org/a", share=1), AccountSpec(account="org/b", share=3))


def report(*facts: Fact) -> Simulation:
    told = scenario(accounts=A)
    return summarise(measure(in_order(*facts), told), told, world="fifo", seed=1, wall_s=0)


def test_who_waits_longer_and_who_gets_less() -> None:
    asked = (submitted("a", 0), submitted("b", 0, account="org/b"))
    before = report(*asked, started("a", 60, {"h1": 1}), left("a", 60 + 2 * HOUR_S),
                    started("b", 600, {"h1": 1}), left("b", 600 + HOUR_S))  # fmt: skip
    after = report(*asked, started("a", 900, {"h1": 1}), left("a", 900 + HOUR_S), started("b", 60, {"h1": 1}))
    found = compare(before, after, A, B)
    assert (found.gets_less, found.waits_longer) == (["org/a"], ["org/a"])
    first = found.accounts[0]
    assert msgspec.to_builtins(first.gpu_hours) == {"a": 2, "b": 1, "change": -1}
    assert msgspec.to_builtins(first.part) == {"a": 0.5, "b": 0.25, "change": -0.25}
    assert first.wait_p90_s.change == 840
    assert found.accounts[1].wait_p90_s.change == -540
    (medium,) = (row for row in found.groups if row.group == "medium")
    assert medium.wait_p50_s.change == 0


def test_a_wait_that_is_not_reached_any_more_is_longer_than_any() -> None:
    asked = (submitted("a", 0), submitted("b", 0, account="org/b"))
    before = report(*asked, started("a", 60, {"h1": 1}), started("b", 60, {"h1": 1}))
    after = report(*asked, started("a", 6000, {"h1": 1}))
    found = compare(before, after, A, B)
    assert found.waits_longer == ["org/b", "org/a"]
    assert next(row for row in found.accounts if row.account == "org/b").wait_p90_s.change is None


def test_a_budget_changes_the_shares_it_names_and_keeps_the_rest() -> None:
    assert with_shares(A, {"org/b": 5, "org/c": 2}) == (
        A[0], AccountSpec(account="org/b", share=5), AccountSpec(account="org/c", share=2),
    )  # fmt: skip
    assert with_shares(A, {"org/a": 4})[0] == AccountSpec(account="org/a", share=4, team_limit_milli=8000)
