"""The token that a program shows is the first line of its file."""

from pathlib import Path

import pytest

from gpuledger.client.shown import token_in
from gpuledger.kernel.errors import Refused


def test_a_token_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("gl_secret \nmore\n")
    assert token_in(file) == "gl_secret"
    assert token_in(None) is None
    with pytest.raises(Refused, match=r"GPULEDGER_API_TOKEN_FILE: .*gone cannot be read: FileNotFoundError"):
        token_in(tmp_path / "gone")
