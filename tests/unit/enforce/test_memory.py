"""What was set is remembered, through failures and crashes."""

from pathlib import Path

import pytest
from tests.unit.enforce.told import NOW_S

from gpuledger.enforce.memory import Memory
from gpuledger.enforce.plan import Command, Target
from gpuledger.kernel.errors import Conflict, Refused


def target(key: str, now: str | None, wanted: str, *, kept: bool = True) -> Target:
    return Target(
        object=key, field="share", now=now, wanted=wanted, why="so", action=Command(("set",)), kept=kept
    )


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "enforce", "slurm-west")


def put(memory: Memory, one: Target, *, at_s: int = NOW_S) -> None:
    with memory.writing() as notes, notes.setting(one, cycle="c1", at_s=at_s):
        pass


def test_nothing_is_remembered_and_no_file_is_made_before_something_is_set(memory: Memory) -> None:
    assert (memory.applied(), memory.changes(), memory.folder.exists()) == ({}, [], False)


def test_what_was_set_last_is_known_and_every_change_is_told(memory: Memory) -> None:
    put(memory, target("a", None, "1"))
    put(memory, target("a", "1", "2"), at_s=NOW_S + 86_400)  # in the next month
    put(memory, target("job", "5", "6", kept=False))

    assert memory.applied() == {"a: share": ("2",)}
    told = [(change["object"], change["from"], change["to"], change["cycle"]) for change in memory.changes()]
    assert told == [("a", None, "1", "c1"), ("job", "5", "6", "c1"), ("a", "1", "2", "c1")]
    assert {path.name for path in memory.folder.glob("*.ndjson")} == {
        "slurm-west.2026-11.ndjson", "slurm-west.2026-12.ndjson",
    }  # fmt: skip


def test_a_change_that_fails_is_not_remembered(memory: Memory) -> None:
    put(memory, target("a", None, "1"))
    for one in (target("a", "1", "2"), target("b", None, "2")):
        with pytest.raises(Refused), memory.writing() as notes, notes.setting(one, cycle="c2", at_s=NOW_S):
            raise Refused("no")

    assert memory.applied() == {"a: share": ("1",)}
    assert len(memory.changes()) == 1


def test_a_crash_amid_a_change_leaves_both_values_open(memory: Memory) -> None:
    put(memory, target("a", None, "1"))
    with memory.writing() as notes:
        setting = notes.setting(target("a", "1", "2"), cycle="c2", at_s=NOW_S)
        setting.__enter__()
        assert Memory(memory.folder, memory.name).applied() == {"a: share": ("1", "2")}


def test_what_was_found_as_it_has_to_be_is_held_too(memory: Memory) -> None:
    with memory.writing() as notes:
        notes.settle({"a: share": "3"})
        notes.settle({})
    assert memory.applied() == {"a: share": ("3",)}


def test_a_line_that_a_crash_cut_off_harms_no_other(memory: Memory) -> None:
    put(memory, target("a", None, "1"))
    path = memory.folder / "slurm-west.2026-11.ndjson"
    path.write_bytes(path.read_bytes() + b'{"at": "2026')
    put(memory, target("a", "1", "2"))
    assert [change["to"] for change in memory.changes()] == ["1", "2"]


def test_two_enforcers_of_one_scheduler_do_not_work_at_once(memory: Memory) -> None:
    with memory.writing(), pytest.raises(Conflict, match="another enforcer is at work"), memory.writing():
        pass
    with memory.writing(), Memory(memory.folder, "slurm-east").writing():
        pass


def test_a_damaged_file_is_named(memory: Memory) -> None:
    memory.folder.mkdir()
    (memory.folder / "slurm-west.json").write_text("{")
    with pytest.raises(Refused, match=r"slurm-west\.json: cannot be read"):
        memory.applied()
