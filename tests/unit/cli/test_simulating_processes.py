"""Simulations in processes of their own."""

from pathlib import Path

import msgspec
import pytest
from tests.commands import simulated

from gpuledger.cli import simulating_processes
from gpuledger.cli.simulating_processes import Done, Failed, cores, run_all, run_here
from gpuledger.kernel.errors import Refused
from gpuledger.simulator.document import Simulation
from gpuledger.simulator.playing import Play, run

DAY_S = 86_400


def same(one: Simulation, other: Simulation) -> bool:
    return msgspec.structs.replace(one, wall_s=0) == msgspec.structs.replace(other, wall_s=0)


def test_an_error_of_another_process_comes_with_its_hint(tmp_path: Path) -> None:
    found = run_here(Play(scenario=str(tmp_path / "missing.yaml"), world="fifo"))
    assert isinstance(found, Failed)
    assert found.refused
    assert found.hint


def test_reports_come_in_the_order_of_the_plays_and_say_the_same_as_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plays = [Play(scenario=str(simulated.scenario(tmp_path)), world=world) for world in ("gpuledger", "fifo")]
    found = run_all("both", plays, DAY_S, 2)
    assert [report.world for report in found] == ["gpuledger", "fifo"]
    assert all(same(report, run(play)) for report, play in zip(found, plays, strict=True))
    assert capsys.readouterr().err.startswith("both: 0 %\n")


def test_an_error_ends_all_of_them(tmp_path: Path) -> None:
    good = Play(scenario=str(simulated.scenario(tmp_path)), world="fifo")
    bad = Play(scenario=str(tmp_path / "missing.yaml"), world="fifo")
    with pytest.raises(Refused, match=r"missing\.yaml"):
        run_all("both", [good, bad], DAY_S, 2)


def test_what_was_done_is_told_when_somebody_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Done] = []
    finished, looks = simulating_processes._finished, 0

    def interrupted_when_one_is_done(waiting: dict[object, int]) -> object:
        nonlocal looks
        if len(waiting) == 1:
            raise KeyboardInterrupt
        looks += 1
        return finished(waiting)  # type: ignore[arg-type]

    monkeypatch.setattr(simulating_processes, "_finished", interrupted_when_one_is_done)
    play = Play(scenario=str(simulated.scenario(tmp_path)), world="fifo")
    with pytest.raises(KeyboardInterrupt):
        run_all("both", [play, play], DAY_S, 1, interrupted=told.append)
    assert looks
    assert [*told[0]] == [0]
    assert same(told[0][0], run(play))
    assert "both: interrupted; 1 of 2 simulations were done\n" in capsys.readouterr().err


def test_there_is_a_core_at_least() -> None:
    assert cores() >= 1
