"""Trouble is told once; a device is clean once it was reset and answers."""

from pathlib import Path

import pytest
from tests.unit.agent.recorded import GPU_1

from gpuledger.agent.checking import Health
from gpuledger.agent.driver import Snapshot
from gpuledger.kernel.errors import Unavailable


def fine(energy: int | None = 1000) -> Snapshot:
    return Snapshot(energy_mj=energy, remap_pending=False, remap_failed=False)


def looked(health: Health, *said: Snapshot | None) -> list[list[str]]:
    return [list(health.look(GPU_1, one)) for one in said]


def test_a_device_without_trouble_tells_nothing(tmp_path: Path) -> None:
    assert looked(Health(tmp_path / "h"), fine(1), fine(2), fine(3)) == [[], [], []]


def test_each_trouble_is_told_once_and_its_end(tmp_path: Path) -> None:
    pending, both = Snapshot(remap_pending=True), Snapshot(remap_pending=True, remap_failed=True)
    found = looked(
        Health(tmp_path / "h"), pending, pending, both, Snapshot(remap_failed=True), fine(), fine()
    )
    assert found == [["remap_pending"], [], ["remap_failed"], [], ["clean"], []]


def test_a_lost_device_that_is_back_is_clean(tmp_path: Path) -> None:
    assert looked(Health(tmp_path / "h"), fine(), None, None, fine(5)) == [[], ["lost"], [], ["clean"]]


def test_a_counter_that_began_anew_is_a_reset_and_so_a_check(tmp_path: Path) -> None:
    """An XID 48 leaves a device that answers: only the reset says that somebody mended it."""
    assert looked(Health(tmp_path / "h"), fine(900), fine(1000), fine(10), fine(20)) == [
        [],
        [],
        ["clean"],
        [],
    ]


def test_a_reset_during_a_restart_of_the_agent_is_seen(tmp_path: Path) -> None:
    before = Health(tmp_path / "h")
    looked(before, fine(900), None)
    before.save()
    before.save()
    assert looked(Health(tmp_path / "h"), None, fine(10)) == [[], ["clean"]]


def test_a_memory_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "h").write_text("{")
    with pytest.raises(Unavailable, match="cannot be read"):
        Health(tmp_path / "h")
    nowhere = Health(tmp_path / "none" / "h")
    looked(nowhere, fine())
    with pytest.raises(Unavailable, match="cannot be written"):
        nowhere.save()
