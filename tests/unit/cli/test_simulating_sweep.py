"""``gpuledger simulate sweep``: every combination in processes of its own, and the best of them."""

import math
from pathlib import Path

import pytest
from tests.commands import simulated
from tests.commands.running import Ran, gpuledger, quick

from gpuledger.cli.simulating_sweep import Failed, run_here
from gpuledger.simulator.playing import Play, run


def sweep(*arguments: object) -> Ran:
    return gpuledger("simulate", "sweep", *arguments, settings={})


def test_each_combination_is_judged_by_the_medians_of_its_seeds(tmp_path: Path) -> None:
    path = simulated.scenario(tmp_path)
    sets = ("--set", "policy.protection_cap_s=3600,7200", "--set", "cycle_s=60")
    ran = sweep(
        path, *sets, "--seeds", 2, "--processes", 2, "--goal", "window", "--goal", "all_p90", "--json"
    )
    assert ran.status == 0
    found = ran.json
    assert (found["scenario"], found["world"], found["days"], found["seeds"]) == (
        "small",
        "gpuledger",
        1,
        [5, 6],
    )
    assert [point["set"] for point in found["points"]] == [
        {"policy.protection_cap_s": cap, "cycle_s": 60} for cap in (3600, 7200)
    ]
    alone = run(Play(scenario=str(path), world="gpuledger", settings={"policy.protection_cap_s": 3600}))
    first = found["points"][0]
    assert first["goals"] == {"window": alone.delivered_over_owed.window, "all_p90": alone.wait_s["all"].p90}
    assert first["least"].keys() == first["most"].keys() == first["goals"].keys()
    # More is better of the one goal, less of the other, and what was not reached is worst of all.
    one, other = (
        (-(point["goals"]["window"] or 0), math.inf if (wait := point["goals"]["all_p90"]) is None else wait)
        for point in found["points"]
    )
    beaten = other != one and other[0] <= one[0] and other[1] <= one[1]
    assert first["best"] is not beaten


def test_people_get_a_table_with_the_best_marked(tmp_path: Path) -> None:
    ran = sweep(simulated.scenario(tmp_path), "--world", "fifo", "--set", "cycle_s=30,60", "--processes", 1)
    assert ran.status == 0
    assert ran.out.startswith("small, fifo: 1 day, medians of 1 seed\n")
    assert (
        sum(line.startswith(" *") for line in ran.out.splitlines()) == 2
    )  # fifo has no cycles: nothing differs
    assert "no other combination" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "policy.windows_s=1"], "windows_s"),
        (["--set", "policy.window_s"], "KEY=VALUE"),
        (["--set", "cycle_s=60", "--goal", "speed"], "speed"),
        (["--set", "cycle_s=60", "--world", "all"], "one world"),
        ([], "--set"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_run(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    ran = quick("simulate", "sweep", simulated.scenario(tmp_path), *arguments, "--json", settings={})
    assert ran.status == 2
    assert told in ran.problem["error"]
    assert "sweep: " not in ran.err


def test_an_error_of_another_process_comes_with_its_hint(tmp_path: Path) -> None:
    found = run_here(Play(scenario=str(tmp_path / "missing.yaml"), world="fifo"))
    assert isinstance(found, Failed)
    assert found.refused
    assert found.hint
