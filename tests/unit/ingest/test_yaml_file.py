"""Files that people write: every fault has its place."""

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import Field

from gpuledger.ingest.yaml_file import Strict, load_yaml, read_yaml, validated
from gpuledger.kernel.errors import NotFound, Refused


class Thing(Strict):
    size: int = 1
    names: tuple[str, ...] = ()


def read(tmp_path: Path, content: str | bytes) -> Thing:
    path = tmp_path / "thing.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_yaml(path, Thing, "docs/thing.md")


def test_a_file_is_read_as_its_model(tmp_path: Path) -> None:
    assert read(tmp_path, "size: 3\nnames: [a, b]\n") == Thing(size=3, names=("a", "b"))


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_an_empty_mapping(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == Thing()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("size: x", "size: Input should be a valid integer"),
        ("sise: 3", r"sise is no key; did you mean size\?"),
        ("names: [a, 3]", r"names\.1: Input should be a valid string"),
        ("names: {a: 3}", "names: Input should be a valid list"),
        ("- 1", "file: Input should be a valid dictionary"),
        ("size: 1\nnames: []\nsize: 2", "'size' stands twice at line 3"),
        ("size: [", "is not YAML: .* at line 1"),
        (b"size: \xff", "is not YAML"),
        ("size: 1\nsince: 2099-13-01", "is not YAML: '2099-13-01' is no timestamp at line 2, column 8"),
        ("since: !!timestamp soon", "is not YAML: 'soon' is no timestamp at line 1"),
        ("size: !!int many", "is not YAML: 'many' is no int at line 1"),
        ("size: !!bool perhaps", "is not YAML: 'perhaps' is no bool at line 1"),
        ("names: " + "[" * 1500, "is nested too deep"),
        ("size: !!python/object/apply:os.system [echo]", "is not YAML"),
    ],
)
def test_a_fault_names_its_place(tmp_path: Path, content: str | bytes, expected: str) -> None:
    with pytest.raises(Refused, match=expected) as caught:
        read(tmp_path, content)
    assert str(tmp_path / "thing.yaml") in caught.value.message


def test_no_file_is_not_found(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(NotFound, match=said) as caught:
            read_yaml(path, Thing, "docs/thing.md")
        assert "docs/thing.md" in caught.value.hint


def test_what_was_loaded_can_be_changed_before_it_is_validated(tmp_path: Path) -> None:
    path = tmp_path / "thing.yaml"
    path.write_text("size: 3\n")
    raw = load_yaml(path, "docs/thing.md")
    assert validated(path, raw | {"names": ["a"]}, Thing, "docs/thing.md") == Thing(size=3, names=("a",))
    with pytest.raises(Refused, match=r"thing\.yaml: size: Input should be a valid integer"):
        validated(path, {"size": "x"}, Thing, "docs/thing.md")


class Numbers(Strict):
    """What numbers, words and truths may be."""

    whole: int = 0
    often: dict[int, int] = Field(default_factory=dict)
    part: Decimal | None = None
    truth: bool = False
    either: int | str | None = None


@pytest.mark.parametrize("content", ["whole: true", "often: {1: yes}", "often: {true: 1}", "part: false"])
def test_true_is_no_number(tmp_path: Path, content: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(content)
    with pytest.raises(Refused, match=content.partition(":")[0] + ".*no numbers"):
        read_yaml(path, Numbers, "docs")


def test_where_truth_is_asked_for_it_may_be_said(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("{truth: true, whole: 1, often: {1: 2}, part: 0.5}")
    assert read_yaml(path, Numbers, "docs").truth
