"""``gpuledger simulate sweep``: every combination in processes of its own, and the best of them."""

import contextlib
import math
import os
import signal
import time
from pathlib import Path

import pytest
from tests.commands import simulated
from tests.commands.running import Ran, finish, gpuledger, quick, start

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import KNOBS
from gpuledger.simulator.playing import Play, found, run, set_all
from gpuledger.simulator.sweep import grid


def sweep(*arguments: object) -> Ran:
    return gpuledger("simulate", "sweep", *arguments, settings={})


def test_each_combination_is_judged_by_the_medians_of_its_seeds(tmp_path: Path) -> None:
    path = simulated.scenario(tmp_path)
    sets = ("--set", "policy.protection_cap_s=3600,7200", "--set", "cycle_s=60")
    ran = sweep(
        path, *sets, "--seeds", 2, "--processes", 2, "--goal", "window", "--goal", "all_p90", "--json"
    )
    assert ran.status == 0
    told = ran.json
    assert (told["scenario"], told["world"], told["days"], told["seeds"]) == (
        "small",
        "gpuledger",
        1,
        [5, 6],
    )
    assert [point["set"] for point in told["points"]] == [
        {"policy.protection_cap_s": cap, "cycle_s": 60} for cap in (3600, 7200)
    ]
    alone = run(Play(scenario=str(path), world="gpuledger", settings={"policy.protection_cap_s": 3600}))
    first = told["points"][0]
    assert first["goals"] == {"window": alone.delivered_over_owed.window, "all_p90": alone.wait_s["all"].p90}
    assert first["least"].keys() == first["most"].keys() == first["goals"].keys()
    # More is better of the one goal, less of the other, and what was not reached is worst of all.
    one, other = (
        (-(point["goals"]["window"] or 0), math.inf if (wait := point["goals"]["all_p90"]) is None else wait)
        for point in told["points"]
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


def test_whatever_knob_the_policy_has_can_be_swept() -> None:
    """No list of them stands here: a knob that is added can be swept, within what it may be."""
    told = found("lesson")
    for knob, within in KNOBS.items():
        value = (
            within.words[-1] if within.words else within.most if knob == "protection_cap_s" else within.least
        )
        (point,) = grid([f"policy.{knob}={value}"])
        assert getattr(set_all(told, point).policy, knob) == value
        with pytest.raises(Refused, match=knob):
            set_all(told, {f"policy.{knob}": within.most + 1 if not within.words else "nonsense"})


def test_an_interrupted_sweep_leaves_no_process_and_says_what_was_done(tmp_path: Path) -> None:
    """One combination is over at once; the others would take long."""
    path = simulated.scenario(tmp_path)
    endless = path.read_text().replace("days: 1", "days: 3000").replace("count: 60", "count: 3000000")
    path.write_text(endless.replace("every_s: 900", "every_s: 90"))
    process = start(
        "simulate",
        "sweep",
        path,
        "--set",
        "cycle_s=30,60,90",
        "--world",
        "gpuledger",
        "--jobs",
        2,
        settings={},
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "sweep: 0 %\n"
    deadline = time.monotonic() + 60
    while len(below := children(process.pid)) < 3 and time.monotonic() < deadline:  # two, and a tracker
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    ran = finish(process, within_s=60)
    assert ran.status == 130, ran.err
    assert "sweep: interrupted; 0 of 3 simulations were done\n" in ran.err
    assert "Traceback" not in ran.err
    assert len(below) >= 2
    deadline = time.monotonic() + 10
    while any(map(is_alive, below)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in below if is_alive(pid)]


def children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
