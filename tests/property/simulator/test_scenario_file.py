"""Scenario files are read strictly: a key that is not known is refused wherever it stands, with its place."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.errors import Refused
from gpuledger.simulator.scenario_file import SHIPPED, read_scenario

INSTITUTE: dict[str, Any] = yaml.safe_load((SHIPPED / "institute.yaml").read_text())
FREE = {"accounts", "mix"}
"""Mappings whose keys are names that people choose."""

NUMBERS = {"gpus", "minimum_runtime_s", "checkpoint_s", "worlds"}
TRAINING = ("demand", "closed_loop", "mix", "training")


def places(value: Any, way: tuple[str, ...] = ()) -> list[tuple[str, ...]]:  # noqa: ANN401 - YAML
    """Return every mapping of a file whose keys are fixed."""
    if not isinstance(value, dict) or (way and way[-1] in NUMBERS):
        return []
    own = [] if way and way[-1] in FREE else [way]
    return [*own, *(place for key, inner in value.items() for place in places(inner, (*way, str(key))))]


def refused(tmp: Path, keys: dict[str, Any]) -> Refused:
    path = tmp / "mine.yaml"
    path.write_text(yaml.safe_dump(keys))
    with pytest.raises(Refused) as caught:
        read_scenario(str(path))
    return caught.value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenarios")


@given(st.sampled_from(places(INSTITUTE)), st.from_regex(r"[a-z]{12,20}", fullmatch=True))
def test_an_unknown_key_is_refused_with_its_place(folder: Path, place: tuple[str, ...], key: str) -> None:
    keys = copy.deepcopy(INSTITUTE)
    inner = keys
    for part in place:
        inner = inner[part]
    inner[key] = 1
    message = refused(folder, keys).message
    assert str(folder / "mine.yaml") in message
    assert f"{'.'.join((*place, key))} is no key; " in message


@given(st.data())
def test_a_slip_of_one_letter_is_asked_about(folder: Path, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(places(INSTITUTE)))
    keys = copy.deepcopy(INSTITUTE)
    inner = keys
    for part in place:
        inner = inner[part]
    known = data.draw(
        st.sampled_from([key for key in inner if isinstance(key, str) and len(key) > 4] or ["days"])
    )
    if known not in inner:
        return
    slip = known[:-1] + "z"
    inner[slip] = inner.pop(known)
    message = refused(folder, keys).message
    assert re.search(rf"{re.escape('.'.join((*place, slip)))} is no key; did you mean \w+\?", message)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(
        [
            *(place for place in places(INSTITUTE) if place),
            *((*TRAINING, key) for key in ("gpus", "minimum_runtime_s", "checkpoint_s")),
        ]
    ),
)
def test_whatever_stands_in_a_file_it_is_read_or_refused(
    folder: Path,
    value: Any,  # noqa: ANN401 - YAML
    place: tuple[str, ...],
) -> None:
    keys = copy.deepcopy(INSTITUTE)
    inner = keys
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(keys))
    said = None
    try:
        list(read_scenario(str(path)).demand(1).first())
    except Refused as error:
        said = error
    assert said is None or (str(path) in said.message and said.hint)
