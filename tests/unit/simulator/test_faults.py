"""Chance of hosts: the same for everybody, one stream each, with the means that were asked for."""

from itertools import islice, pairwise

import pytest

from gpuledger.simulator.faults import faults, needs_hands, wishes
from gpuledger.simulator.scenario import FaultModel, FaultRecord, Outage

MODEL = FaultModel(mtbf_s=100_000, repair_s=5_000, drain_mtbf_s=200_000, drain_repair_s=1_000)


def test_the_same_seed_and_host_bring_the_same() -> None:
    for draw in (faults, wishes):
        first, again, other, host = (
            list(islice(draw(MODEL, name, seed=seed, start_s=7), 50))
            for name, seed in (("h0", 1), ("h0", 1), ("h0", 2), ("h1", 1))
        )
        assert first == again
        assert first not in (other, host)


def test_a_fault_comes_after_the_one_before_is_mended() -> None:
    drawn = list(islice(faults(MODEL, "h0", seed=1, start_s=0), 2000))
    assert all(before.at_s + before.lasts_s < after.at_s for before, after in pairwise(drawn))


def test_means_are_as_asked_for() -> None:
    """4000 of them: the standard error of a mean is 1.6 %."""
    broken = list(islice(faults(MODEL, "h0", seed=1, start_s=0), 4000))
    up_s = broken[-1].at_s - sum(outage.lasts_s for outage in broken[:-1])
    assert up_s / 4000 == pytest.approx(100_000, rel=0.06)
    assert sum(outage.lasts_s for outage in broken) / 4000 == pytest.approx(5_000, rel=0.06)
    asked = list(islice(wishes(MODEL, "h0", seed=1, start_s=0), 4000))
    assert asked[-1].at_s / 4000 == pytest.approx(200_000, rel=0.06)
    assert sum(outage.lasts_s for outage in asked) / 4000 == pytest.approx(1_000, rel=0.06)


def test_hosts_that_never_break() -> None:
    never = FaultModel()
    assert list(faults(never, "h0", seed=1, start_s=0)) == []
    assert list(wishes(never, "h0", seed=1, start_s=0)) == []


def test_a_repair_takes_a_second_at_least() -> None:
    quick = FaultModel(mtbf_s=1, repair_s=0)
    assert {outage.lasts_s for outage in islice(faults(quick, "h0", seed=1, start_s=0), 100)} == {1}


def test_what_is_recorded_is_not_drawn() -> None:
    record = FaultRecord(failed={"h1": [Outage(5, 60)]}, wanted={"h2": [Outage(7, 90), Outage(400, 1)]})
    for seed in (1, 2):
        assert list(faults(record, "h1", seed=seed, start_s=0)) == [Outage(5, 60)]
        assert list(wishes(record, "h1", seed=seed, start_s=0)) == []
        assert list(wishes(record, "h2", seed=seed, start_s=0)) == [Outage(7, 90), Outage(400, 1)]


def test_which_repairs_need_hands_is_an_input_that_hangs_on_the_repair_alone() -> None:
    model = FaultModel(hands_permille=250)
    drawn = [needs_hands(model, f"h{n}", 60 * n, seed=1) for n in range(2_000)]
    assert drawn == [needs_hands(model, f"h{n}", 60 * n, seed=1) for n in range(2_000)]
    assert 440 < sum(map(bool, drawn)) < 560
    assert not needs_hands(FaultModel(), "h1", 0, seed=1)
    assert needs_hands(FaultRecord(), "h1", 0, seed=1) is None
