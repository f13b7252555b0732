"""Names and sizes of files."""

from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.rows import PHILLY, only, read

from gpuledger.kernel.errors import Refused
from gpuledger.sources.files import file_size, path_text


def test_a_file_name_that_is_no_text_does_no_harm(tmp_path: Path) -> None:
    import os

    path = Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/tr\xe9ce.csv"))
    fault = only(read("philly", path, PHILLY + b"\nx\n"))
    fault.path.encode()
    fault.message.encode()
    msgspec.json.encode(fault.context)


def test_the_size_is_that_on_disk(tmp_path: Path) -> None:
    (tmp_path / "five").write_bytes(b"12345")
    assert file_size(tmp_path / "five") == 5


def test_a_path_that_cannot_be_looked_at_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"nowhere: No such file") as caught:
        file_size(tmp_path / "nowhere")
    assert caught.value.hint == "check the path"
    with pytest.raises(Refused, match=r"a\\x00b"):
        file_size(Path("a\0b"))


def test_a_path_is_text_that_every_store_takes() -> None:
    assert path_text(Path("a/b.csv")) == "a/b.csv"
    assert path_text(Path("tr\udce9ce\0")) == r"tr\udce9ce\x00"
