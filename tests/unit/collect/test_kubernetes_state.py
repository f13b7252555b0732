from pathlib import Path

import pytest

from gpuledger.collect.kubernetes_state import Position, PositionFile
from gpuledger.kernel.errors import Refused


def test_a_position_is_kept_whole(tmp_path: Path) -> None:
    file = PositionFile(tmp_path / "collect" / "kubernetes-c.json")
    assert file.read() == Position()
    jobs: dict[str, tuple[list[str], int | None]] = {"w": (["u", "ns/JobSet/x"], None), "v": (["t"], 5)}
    position = Position({"Pod": "7"}, {"Pod": {"u": b'{"kind":"Pod"}'}}, {"Pod": 5}, jobs)
    file.write(position)
    assert PositionFile(file.path).read() == position
    file.write(Position())
    assert file.read() == Position()
    assert [path.name for path in file.path.parent.iterdir()] == [file.path.name]


def test_a_file_of_a_version_that_knew_no_jobs_is_read(tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"versions": {"Pod": "7"}, "living": {}, "seen": {}}')
    assert PositionFile(tmp_path / "p").read() == Position({"Pod": "7"})


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "p").write_text('{"versions": {}')
    with pytest.raises(Refused, match="cannot be read") as refused:
        PositionFile(tmp_path / "p").read()
    assert "remove it" in refused.value.hint


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no-folder").write_text("")
    with pytest.raises(Refused, match="cannot be written"):
        PositionFile(tmp_path / "no-folder" / "p").write(Position())
