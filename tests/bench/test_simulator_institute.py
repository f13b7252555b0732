"""What the institute published, held against the worlds ``old`` and ``gpuledger`` on seeds that nobody tuned on.

The full form is what is published: scenario ``institute``, 30 days after a warm-up of 7, ten seeds. It is played in
parallel processes and goes on from what was finished before (``GPULEDGER_TEST_FORM=full just test -m bench -s``, this
file): each simulation is kept under ``build/simulated``. The short form plays three days of ``institute-88``, five
accounts on 88 GPUs, in half a minute, and gates what so few days can show. Medians gate; least and most are printed.
"""

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, median_high, median_low

import msgspec
import pytest
from tests.bench.institute import Asked, Played, Waited, played
from tests.conftest import FORM

from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.kernel.survival import Lengths
from gpuledger.simulator.document import Simulation

pytestmark = [pytest.mark.bench, pytest.mark.timeout(86_400)]

IS_FULL = FORM == "full"
SCENARIO, DAYS, WARM_UP_DAYS = ("institute", 30, 7) if IS_FULL else ("institute-88", 3, 2)
SEEDS = range(101, 111) if IS_FULL else range(101, 103)
FOLDER = Path("build", "simulated")
CYCLE_S = 60
WITHOUT_DATES = {"policy.reservations": "none"}
full_form = pytest.mark.skipif(not IS_FULL, reason="a few days of a small cluster cannot show it: full form")


def asked(world: str, settings: dict[str, str] | None = None) -> list[Asked]:
    return [
        Asked(
            scenario=SCENARIO,
            world=world,
            seed=seed,
            days=DAYS,
            warm_up_days=WARM_UP_DAYS,
            settings=settings or {},
        )
        for seed in SEEDS
    ]


class Both:
    """What came of all seeds, in the old world, in ours, and in ours without dates."""

    def __init__(self, folder: Path) -> None:
        others = asked("gpuledger", WITHOUT_DATES) if IS_FULL else []
        found = list(played([*asked("old"), *asked("gpuledger"), *others], folder))
        count = len(SEEDS)
        self.old, self.ours, self.dateless = found[:count], found[count : 2 * count], found[2 * count :]

    def of(self, what: str, figure: Callable[[Simulation], float | None]) -> tuple[list[float], list[float]]:
        """Return a figure of every seed, in the old world and in ours, and print medians, least and most."""
        pair = [
            [float("inf") if (value := figure(one.told)) is None else float(value) for one in world]
            for world in (self.old, self.ours)
        ]
        said = [f"{median(values):.4g} ({min(values):.4g} to {max(values):.4g})" for values in pair]
        print(f"{what}: old {said[0]}, gpuledger {said[1]}")
        return pair[0], pair[1]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Both:
    """Everybody's, played once. The short form begins anew each time: what it plays is the test."""
    folder = pytestconfig.rootpath / FOLDER if IS_FULL else tmp_path_factory.mktemp("simulated")
    folder.mkdir(parents=True, exist_ok=True)
    began = os.times().elapsed
    found = Both(folder)
    print(f"{SCENARIO}, {DAYS} days, {len(SEEDS)} seeds: {os.times().elapsed - began:.0f} s")
    return found


def pooled(world: Sequence[Played], group: str) -> Lengths:
    return Lengths.merged(one.waits[group].lengths for one in world)


def p90_s(lengths: Lengths) -> float:
    reached = lengths.quantile(900)
    return float("inf") if reached is None else reached


def test_accounts_get_what_they_are_owed(both: Both) -> None:
    _, window = both.of("delivered / owed, window", lambda one: one.delivered_over_owed.window)
    _, worst = both.of("the worst account", lambda one: one.delivered_over_owed.worst)
    _, enough = both.of(
        "accounts with 95 % or more, of 15",
        lambda one: 15 * one.delivered_over_owed.at_least_95 / one.delivered_over_owed.of,
    )
    beside = {
        "the worst trailing 7 days": lambda one: one.delivered_over_owed.worst_7_days,
        "by the hour": lambda one: one.delivered_over_owed.hourly,
        "window, placeable work alone": lambda one: one.delivered_over_owed.placeable.window,
        "the worst account, placeable work alone": lambda one: one.delivered_over_owed.placeable.worst,
        "the worst 7 days, placeable work alone": lambda one: one.delivered_over_owed.placeable.worst_7_days,
        "by the hour, placeable work alone": lambda one: one.delivered_over_owed.placeable.hourly,
        "owed for work that is not placeable, GPU-hours": (
            lambda one: one.delivered_over_owed.not_placeable_gpu_hours
        ),
    }
    for what, figure in beside.items():
        both.of(what, figure)
    assert median_low(window) >= 0.98
    assert median_low(enough) >= 13
    assert median_low(worst) >= 0.90


def test_debug_jobs_wait_for_minutes_where_they_waited_for_hours(both: Both) -> None:
    """The grace is within the wait: GPUs that a victim still holds are not handed over."""
    before, now = both.of("debug p90, s", lambda one: one.wait_s["debug"].p90)
    print(f"grace {PolicyConfig().grace_s} s; stretch of 60 s reached: {median_high(now) <= 60}")
    assert median_high(now) <= 300
    assert median_low(before) > (3600 if IS_FULL else 300)


def test_everybody_waits_less_by_the_published_factors(both: Both) -> None:
    for quantile, factor in (("p50", 12.0), ("p90", 1.5)):
        before, now = both.of(
            f"all, {quantile}, s", lambda one, which=quantile: getattr(one.wait_s["all"], which)
        )
        assert factor * median_high(now) <= median_low(before)


def test_drains_hardly_ever_have_to_ask_a_user(both: Both) -> None:
    before, now = both.of("drains that had to ask", lambda one: one.human_repairs)
    both.of("drains", lambda one: one.drains.begun)
    both.of("time to empty, p90, s", lambda one: one.drains.time_to_empty_s.p90)
    assert median_high(now) <= 0.26 * median_low(before)


def test_stock_of_work_and_states_are_as_they_are_said_to_be(both: Both) -> None:
    """Demand is 2 to 3 times the supply without a trend; each GPU-second is in one state."""
    for one in (*both.old, *both.ours):
        ratios = [ratio for ratio in one.told.over_time.demand_over_supply if ratio is not None]
        half = len(ratios) // 2
        assert one.told.residual_gpu_ms == 0
        assert one.told.demand_over_supply is not None
        assert 2 <= one.told.demand_over_supply <= 3
        if IS_FULL:
            earlier, later = sum(ratios[:half]) / half, sum(ratios[half:]) / (len(ratios) - half)
            assert abs(earlier - later) < 0.2
    both.of("demand / supply", lambda one: one.demand_over_supply)
    both.of("unallocated share, as calibrated", lambda one: one.unallocated_share)
    both.of("GPU-hours of work lost", lambda one: one.lost_gpu_hours)
    both.of("preemptions", lambda one: one.preemptions)


@full_form
def test_the_cluster_is_as_busy_as_it_was_and_as_was_published(both: Both) -> None:
    _, with_overhead = both.of("(A + N + O) / H", lambda one: one.occupancy_with_overhead)
    before, now = both.of("(A + N) / H", lambda one: one.occupancy)
    for part in ("overhead", "reserved", "free"):
        both.of(f"shortfall, {part}", lambda one, which=part: getattr(one.shortfall, which))
    squatted, _ = both.of(
        "held with nothing done",
        lambda one: one.idle_gpu_hours * 3_600_000 / one.partition_gpu_ms["installed"],
    )
    assert median_low(with_overhead) >= 0.98
    assert median_low(now) >= median_high(before) - median_low(squatted)


@full_form
def test_the_largest_wait_no_longer_than_before_and_start_within_cap_and_grace(both: Both) -> None:
    worlds = {"old": both.old, "gpuledger": both.ours, "without dates": both.dateless}
    found = {name: pooled(world, "largest") for name, world in worlds.items()}
    for name, lengths in found.items():
        ends = lengths.interval(900, random.Random(1))
        print(f"largest, p90, {name}: {p90_s(lengths):.0f} s {ends} of {lengths.count}")
    ours, config = p90_s(found["gpuledger"]), PolicyConfig()
    print(f"below those without dates by a factor of {p90_s(found['without dates']) / ours:.1f}")
    assert ours <= p90_s(found["old"])
    assert ours < p90_s(found["without dates"])
    assert ours <= config.protection_cap_s + config.grace_s + 2 * CYCLE_S


def test_waits_that_are_kept_are_read_back_whole(both: Both) -> None:
    for one in both.ours:
        for group, kept in one.waits.items():
            told = one.told.wait_s[group]
            assert [told.p50, told.p90, told.p99] == kept.lengths.quantiles(500, 900, 990)
            assert Waited.of(kept.lengths) == kept


def test_what_was_played_is_not_played_again(both: Both, tmp_path: Path) -> None:
    """A kept file is read, whatever it says of how long it took; one of another program is not looked at."""
    one = asked("old")[0]
    other = Asked(scenario=SCENARIO, world="old", seed=one.seed, days=DAYS + 1, warm_up_days=WARM_UP_DAYS)
    assert one.name() != other.name()
    (tmp_path / one.name()).write_bytes(msgspec.json.encode(both.old[0]))
    before = (tmp_path / one.name()).stat().st_mtime_ns
    assert list(played([one], tmp_path)) == [both.old[0]]
    assert (tmp_path / one.name()).stat().st_mtime_ns == before
