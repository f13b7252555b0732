"""What waits is on disk, in order and bounded; what has to go is told."""

from pathlib import Path

import pytest

from gpuledger.agent.spool import Lost, Spool, Spooled
from gpuledger.kernel.errors import Unavailable

ROOM = 1 << 20


def message(number: int, size: int = 10, messages: int = 1) -> Spooled:
    lost = Lost(start_s=number * 60, end_s=number * 60 + 60, messages=messages)
    return Spooled(topic="gpu.telemetry", key="n1", value=f"{number}:" + "x" * size, if_lost=lost)


def numbers(spool: Spool) -> list[int]:
    return [int(message.value.partition(":")[0]) for _, message in spool.waiting(1000)]


def test_messages_wait_in_order_until_they_are_done(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", ROOM)
    for number in range(12):
        spool.put(message(number))
    assert numbers(spool) == list(range(12))
    spool.done([spooled for spooled, _ in spool.waiting(5)])
    assert numbers(spool) == list(range(5, 12))
    assert spool.lost() is None


def test_what_waits_outlives_the_agent(tmp_path: Path) -> None:
    Spool(tmp_path, ROOM).put(message(1))
    again = Spool(tmp_path, ROOM)
    again.put(message(2))
    assert numbers(again) == [1, 2]


def test_when_it_is_full_the_oldest_go_and_the_loss_is_known_after_a_restart(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 2000)
    for number in range(20):
        spool.put(message(number, 300))
    kept = numbers(spool)
    assert 1 < len(kept) < 20
    assert kept == list(range(20 - len(kept), 20))
    lost = Lost(start_s=0, end_s=(20 - len(kept)) * 60, messages=20 - len(kept))
    assert spool.lost() == lost
    assert Spool(tmp_path, 2000).lost() == lost
    spool.done([spooled for spooled, _ in spool.waiting(1)])
    spool.put(message(20), lost)
    assert spool.lost() is None
    assert Spool(tmp_path, 2000).lost() is None


def test_what_goes_while_a_loss_is_told_is_told_next_time(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1000)
    for number in range(6):
        spool.put(message(number, 300))
    first = spool.lost()
    assert first is not None
    spool.put(message(6, 300), first)
    after = spool.lost()
    assert after == Lost(start_s=first.end_s, end_s=first.end_s + 60, messages=1)
    spool.put(message(7, 20), first)
    assert spool.lost() == after
    assert Spool(tmp_path, 1000).lost() == after


def test_a_loss_that_a_lost_message_told_of_is_told_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1000)
    spool.put(message(0, 300, messages=41))
    for number in range(1, 4):
        spool.put(message(number, 300))
    assert spool.lost() == Lost(start_s=0, end_s=120, messages=42)


def test_a_damaged_message_is_a_loss_and_the_rest_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path, ROOM)
    for number in range(3):
        spool.put(message(number))
    files = sorted(tmp_path.glob("*.message"))
    files[0].write_bytes(b"{")
    files[1].unlink()
    assert numbers(spool) == [2]
    lost = spool.lost()
    assert lost is not None
    assert lost.messages == 1


def test_a_disk_that_is_full_loses_the_message_and_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, ROOM)

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuledger.agent.spool._write", full)
    spool.put(message(1))
    assert numbers(spool) == []
    assert spool.lost() == Lost(start_s=60, end_s=120, messages=1)


def test_a_folder_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be used"):
        Spool(tmp_path / "file", ROOM)
