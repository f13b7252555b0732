"""As it was, as it is decided again, as it would have been decided under something else."""

from dataclasses import replace

from tests.unit.simulator.stories import DAY_S, HOUR_S, START_S, left, scenario, started, submitted

from gpuledger.simulator.backtest.reading import Retold
from gpuledger.simulator.backtest.replaying import UNKNOWN, back_test, named
from gpuledger.simulator.comparison import with_shares
from gpuledger.simulator.demand.listed import Given
from gpuledger.simulator.facts import Fact, Submitted
from gpuledger.simulator.scenario import Scenario


def retold() -> Retold:
    """Sixteen GPUs, and two accounts that each ask for all of them all day; one came a minute earlier, each time."""
    asks = [
        submitted(f"{account[-1]}{hour}", hour * HOUR_S + minute, account=account, gpus=16)
        for hour in range(0, 20, 2)
        for minute, account in ((0, "org/a"), (60, "org/b"))
    ]
    jobs = [replace(ask.job, work_s=2 * HOUR_S) for ask in asks if isinstance(ask, Submitted)]
    story = replace(scenario(), demand=lambda _: Given(jobs))
    facts: list[Fact] = [Submitted(at_s=job.submitted_s, job=job) for job in jobs[:2]]
    facts += [started("a0", 90, {"h1": 8, "h2": 8}), left("a0", 90 + 2 * HOUR_S)]
    facts.sort(key=lambda fact: fact.at_s)
    return Retold(scenario=story, facts=facts)


def test_past_and_decided_stand_beside_each_other() -> None:
    told = retold()
    found = back_test(told, None)
    assert (found.past.world, found.decided.world) == ("past", "gpuledger")
    assert found.past.wait_s["all"].p50 == 90
    assert found.past.gpu_hours["org/a"] == 32.0
    assert (found.decided.jobs, found.decided.wait_s["all"].p50) != (2, 90)
    assert named(found, "nothing") == ((found.past, found.decided), ("past", "as decided"))


def test_the_other_is_compared_with_what_was_decided() -> None:
    told = retold()
    other = replace(told.scenario, accounts=with_shares(told.scenario.accounts, {"org/a": 1, "org/b": 3}))
    watched: list[tuple[str, str, int]] = []

    def watch(what: str, of: Scenario) -> None:
        watched.append((what, of.name, of.end_s - START_S))

    found = back_test(told, other, watch=watch)
    assert [what for what, _, _ in watched] == ["as decided", "under the other"]
    assert {length for _, _, length in watched} == {DAY_S}
    assert found.other is not None
    assert found.comparison is not None
    assert found.comparison.gets_less == ["org/a"]
    assert found.comparison.window.a == found.decided.delivered_over_owed.window
    assert named(found, "b.yaml")[1] == ("past", "as decided", "b.yaml")


def test_the_same_under_the_same() -> None:
    told = retold()
    found = back_test(told, told.scenario)
    assert found.comparison is not None
    assert (found.comparison.gets_less, found.comparison.waits_longer) == ([], [])


def test_what_cannot_be_known_is_said_in_sentences() -> None:
    assert all(line.endswith(".") for line in UNKNOWN)
    assert any("as they did" in line or "when they did" in line for line in UNKNOWN)
