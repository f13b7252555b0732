"""Slurm through its commands: what they print becomes a plan, and a plan becomes commands."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.enforce.slurmbin import SlurmBin
from tests.integration.enforce.worlds import CALENDAR, World
from tests.unit.enforce.told import allocation, leaves, waits

from gpuledger.collect.programs import CommandFailed, Programs
from gpuledger.database.engine import make_engine
from gpuledger.enforce.applying import enforce
from gpuledger.enforce.config import Budgets, Order, Slurm
from gpuledger.enforce.memory import Memory
from gpuledger.enforce.plan import Command, Eviction
from gpuledger.enforce.slurm_rim import SlurmCommands
from gpuledger.kernel.errors import Refused, Unavailable

SUBMITTED_S = 1_796_038_251
CONFIG = Slurm(managed=("proj-*",), order=Order(), budgets=Budgets(), hosts=True, preempt=True)
ALLOCATIONS = (
    allocation("ai2test", 1_000_000, 16, 16),
    allocation("ai2test/proj-a1", 250_000, 4, 8),
    allocation("ai2test/proj-a2", 250_000, 0, 0),
    allocation("ai2test/proj-b1", 500_000, 12, 12),
)


@pytest.fixture
def slurm(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "tuple[World, SlurmBin, SlurmCommands]":
    world = World(make_engine(database_url), "ai2test", ("node1", "node2"))
    commands = SlurmBin(tmp_path, monkeypatch)
    programs = Programs(tmp_path / "printed", pause_s=0)
    return world, commands, SlurmCommands(world.engine, programs, CONFIG, world.clock, CALENDAR)


def test_a_run_does_what_the_cycle_says_and_no_more(
    slurm: tuple[World, SlurmBin, SlurmCommands], tmp_path: Path
) -> None:
    world, commands, scheduler = slurm
    run = str(SUBMITTED_S)
    world.submit(f"2-{run}", "ai2test/proj-a1", 2, minimum_s=60)
    world.start(f"2-{run}", run, 2, "node2")
    world.pass_time(60)
    world.record(waits(f"3_1-{run}", 1), leaves(f"2-{run}", run), allocations=ALLOCATIONS)

    outcome = enforce(scheduler, Memory(tmp_path, "slurm"), world.now_s)

    assert outcome.failed == []
    assert commands.commands() == [
        "sacctmgr -i modify account where name=proj-a1 cluster=ai2test set fairshare=4000",
        "sacctmgr -i modify account where name=proj-a2 cluster=ai2test set fairshare=4000",
        "sacctmgr -i modify account where name=proj-b1 cluster=ai2test set fairshare=12000",
        "scontrol update JobId=3 Priority=1000001000",
        "scontrol requeue 2",
    ]


def test_a_command_that_fails_keeps_the_others_from_nothing(
    slurm: tuple[World, SlurmBin, SlurmCommands], tmp_path: Path
) -> None:
    world, commands, scheduler = slurm
    world.record(waits(f"3_1-{SUBMITTED_S}", 1), allocations=ALLOCATIONS)
    commands.bin.put(
        "scontrol",
        f'case "$*" in *"show config"*) cat {commands.answers}/config.txt;; *) echo no right >&2; exit 1;; esac',
    )
    outcome = enforce(scheduler, Memory(tmp_path, "slurm"), world.now_s)

    assert [(t.key, why.message) for t, why in outcome.failed] == [
        ("job 3: priority", "scontrol failed with status 1: no right")
    ]
    assert len(outcome.done) == 3


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("slurm_update error: Access/permission denied", Refused),
        ("Requested operation is presently disabled for job 3", Refused),
        ("slurm_update error: Invalid job id specified", Unavailable),
        ("Job/step already completing or completed for job 3", Unavailable),
        ("slurm_update error: Unable to contact slurm controller (connect failure)", Unavailable),
        ("slurm_update error: Socket timed out on send/recv operation", Unavailable),
        ("", Unavailable),
    ],
)
def test_what_slurm_refuses_for_good_is_told_from_what_may_be_otherwise_at_the_next_run(
    slurm: tuple[World, SlurmBin, SlurmCommands], said: str, error: type[Exception]
) -> None:
    _, commands, scheduler = slurm
    commands.bin.put("scontrol", f"echo '{said}' >&2; exit 1")
    with pytest.raises(error, match="scontrol failed with status 1"):
        scheduler.act(Command(("scontrol", "requeue", "3")))


def test_only_what_is_switched_on_is_asked_for(slurm: tuple[World, SlurmBin, SlurmCommands]) -> None:
    world, commands, scheduler = slurm
    world.record(allocations=ALLOCATIONS)
    for name in ("squeue", "sinfo", "sshare"):
        commands.bin.take(name)
    _, draft = replace(scheduler, config=Slurm(managed=("proj-*",))).draft({})
    assert [target.field for target in draft.targets] == ["fairshare"] * 3

    with pytest.raises(Refused, match="is not installed here"):
        scheduler.draft({})


def test_slurm_that_does_not_answer_is_asked_again_later(
    slurm: tuple[World, SlurmBin, SlurmCommands],
) -> None:
    _, commands, scheduler = slurm
    commands.bin.put("scontrol", "echo down >&2; exit 1")
    with pytest.raises(CommandFailed, match="down"):
        scheduler.draft({})


def test_slurm_takes_commands_only(slurm: tuple[World, SlurmBin, SlurmCommands]) -> None:
    with pytest.raises(Refused, match="Slurm takes commands"):
        slurm[2].act(Eviction("n", "p", "u"))
