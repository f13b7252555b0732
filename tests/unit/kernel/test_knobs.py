"""The knobs of the policy: what each may be, and that the page about them says so."""

import dataclasses
import re
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused
from gpuledger.kernel.knobs import KNOBS, PolicyConfig, Range, check

ROW = re.compile(r"^\| `(\w+)` \| `?([\w-]+)`? \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_the_page_names_every_knob_with_its_default_and_range() -> None:
    page = Path("docs/fairness.md").read_text().partition("## Knobs")[2].partition("\n## ")[0]
    told = {name: (default, within) for name, default, within, _ in ROW.findall(page)}
    expected = {}
    for field in dataclasses.fields(PolicyConfig):
        within = KNOBS[field.name]
        shown = ", ".join(f"`{word}`" for word in within.words) or f"{within.least} to {within.most}"
        expected[field.name] = (str(field.default), shown)
    assert told == expected


def test_settings_are_the_defaults_and_what_was_set() -> None:
    assert PolicyConfig.of({}) == PolicyConfig()
    assert PolicyConfig.of({"horizon_s": 7, "grace_s": 0}) == PolicyConfig(horizon_s=7, grace_s=0)


def test_a_minimum_runtime_protects_up_to_the_cap() -> None:
    config = PolicyConfig(protection_cap_s=7200)
    assert [config.protected_s(asked) for asked in (0, 7199, 7200, 7201)] == [0, 7199, 7200, 7200]


def test_an_unknown_setting_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match="policy setting horizon is not known") as caught:
        PolicyConfig.of({"horizon": 7})
    assert caught.value.hint == "did you mean horizon_s?"
    with pytest.raises(Refused) as caught:
        check("zzz", 1)
    assert "window_s" in caught.value.hint


@pytest.mark.parametrize("value", ["900", True, 1.5, 0])
def test_a_number_is_a_whole_number_in_its_range(value: object) -> None:
    with pytest.raises(Refused, match="quantum_s is"):
        check("quantum_s", value)  # type: ignore[arg-type]
    check("quantum_s", None)


def test_a_word_is_one_of_its_words() -> None:
    assert Range(words=("a", "b")).holds("b")
    assert not Range(words=("a", "b")).holds(1)
    assert str(Range(words=("a", "b"))) == "a, b"


def test_a_record_of_before_a_knob_came_is_read_and_written_as_it_was() -> None:
    """The digest is that of the defaults before there were ``victims`` and ``reservations``."""
    before = PolicyConfig(victims="most-used")
    assert before.version == "96e278dbf59cdbe09adaca734ebf355a8c787a0131e63320dc632b7fc17edac4"
    assert not {"victims", "reservations"} & before.written().keys()
    assert PolicyConfig.read(before.written()) == before
    assert PolicyConfig().written() == {**before.written(), "victims": "least-work"}


def test_what_is_written_of_a_cycle_is_read_again() -> None:
    for config in (PolicyConfig(), PolicyConfig(reservations="none", grace_s=7, mode="half-life")):
        assert PolicyConfig.read(config.written()) == config
