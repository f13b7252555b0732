"""Files that are made from the sealed one: those whose library is missing are left out, and said."""

import pytest
from tests.unit.close.close_said import document

from gpuledger.close import rendering
from gpuledger.close.document import Document, encode
from gpuledger.close.rendering import render


def test_the_sealed_file_is_the_first_and_is_what_it_is() -> None:
    said = document()
    made = render(encode(said), said)
    assert next(iter(made.files.items())) == ("close.json", encode(said))
    assert {*made.files} == {"close.json", *rendering.RENDERERS}
    assert not made.left_out


def test_every_file_is_the_same_each_time() -> None:
    said = document()
    assert render(encode(said), said).files == render(encode(said), said).files


def test_a_file_without_its_library_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: Document) -> bytes:
        raise ModuleNotFoundError("No module named 'ink'", name="ink")

    monkeypatch.setattr(rendering, "RENDERERS", {"a.txt": lambda _: b"a", "a.pdf": missing})
    made = render(b"{}", document())
    assert made.files == {"close.json": b"{}", "a.txt": b"a"}
    assert made.left_out == ["a.pdf: ink is not installed; pip install 'gpuledger[pipelines]' brings it"]
