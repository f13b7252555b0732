"""A reading stands for the time since the one before it; counters may begin anew; nothing is ever negative."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events.host import HealthObserved
from gpuledger.events.telemetry import Sampled
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.readings import SILENCE_S, Device, Readings, measured


def readings() -> Readings:
    return Readings("dcgm", ImportOptions(cluster="west", host="n1"))


def device(**keys: Any) -> Device:  # noqa: ANN401
    return Device(uuid="GPU-1", pci="00000000:18:00.0", **keys)


def sampled(facts: Facts) -> tuple[int, Sampled]:
    event = facts[0][0][0]
    assert isinstance(event.data, Sampled)
    return event.at_s, event.data


def test_a_reading_that_is_read_again_stands_for_the_time_since_the_one_before_it() -> None:
    found = readings()
    found.facts("n1", 1000, [device()])
    found.forget()
    again = Readings("dcgm", ImportOptions(cluster="west", host="n1"), found.remember())
    with pytest.raises(BadRecord) as caught:
        again.facts("n1", 1000, [device()])
    assert caught.value.code == "same-second"
    assert sampled(again.facts("n1", 1030, [device()]))[1].interval_s == 30
    found.forget()
    assert found.remember() == {"read": []}


def test_a_second_that_was_told_of_twice_is_no_other_when_it_is_read_again() -> None:
    found = readings()
    for at_s in (1000, 1060):
        found.facts("n1", at_s, [device()])
    with pytest.raises(BadRecord):
        found.facts("n1", 1000, [device()])
    found.forget()
    again = Readings("dcgm", ImportOptions(cluster="west", host="n1"), found.remember())
    with pytest.raises(BadRecord) as caught:
        again.facts("n1", 1000, [device()])
    assert caught.value.code == "same-second"
    assert sampled(again.facts("n1", 1090, [device()]))[1].interval_s == 30


@pytest.mark.parametrize("kept", [None, 7, [1], [["n1", "", "x"]], [["n1", 5, 7]]])
def test_a_memory_that_is_none_is_passed_over(kept: object) -> None:
    again = Readings("dcgm", ImportOptions(host="n1"), {"read": kept})
    assert sampled(again.facts("n1", 1000, [device()]))[1].interval_s == 1


def test_the_first_reading_stands_for_a_second_and_the_next_for_the_time_between() -> None:
    own = readings()
    at_s, first = sampled(own.facts("n1", 1000, [device()]))
    assert (at_s, first.interval_s) == (999, 1)
    at_s, second = sampled(own.facts("n1", 1060, [device()]))
    assert (at_s, second.interval_s) == (1000, 60)
    assert sampled(own.facts("n2", 1061, [device()]))[1].interval_s == 1


def test_a_silence_is_unknown_and_not_what_the_next_reading_says() -> None:
    own = readings()
    own.facts("n1", 1000, [device()])
    facts = own.facts("n1", 1001 + SILENCE_S, [device()])
    assert sampled(facts)[1].interval_s == 1
    assert [code for code, _ in facts[1]] == ["silence"]
    own.facts("n1", 1001 + SILENCE_S + SILENCE_S, [device()])


def test_a_clock_that_went_back_begins_anew() -> None:
    own = readings()
    own.facts("n1", 1000, [device()])
    facts = own.facts("n1", 900, [device()])
    assert sampled(facts)[1].interval_s == 1
    assert [code for code, _ in facts[1]] == ["time-went-back"]


def test_a_second_reading_in_one_second_is_a_fault() -> None:
    own = readings()
    own.facts("n1", 1000, [device()])
    with pytest.raises(BadRecord, match="same second") as caught:
        own.facts("n1", 1000, [device()])
    assert caught.value.code == "same-second"
    own.facts("n1", 1000, [device()], "GPU-2")


def test_a_clock_that_comes_to_a_second_again_loses_no_reading_unseen() -> None:
    own = readings()
    for at_s in (1000, 1060, 940):
        own.facts("n1", at_s, [device()])
    for at_s in (1000, 1060):
        with pytest.raises(BadRecord) as caught:
            own.facts("n1", at_s, [device()])
        assert caught.value.code == "same-second"
    assert sampled(own.facts("n1", 1000, [device()], "GPU-2"))[1].interval_s == 1
    assert sampled(own.facts("n2", 1000, [device()]))[1].interval_s == 1


def test_what_a_lost_reading_would_have_stood_for_stays_unknown() -> None:
    own = readings()
    own.facts("n1", 1000, [device()])
    own.forget()
    assert sampled(own.facts("n1", 1060, [device()]))[1].interval_s == 1


def test_energy_of_a_time_in_which_a_device_was_not_seen_is_no_other_times() -> None:
    """Whoever holds it afterwards has not used it."""
    own, other = readings(), Device(uuid="GPU-2")
    own.facts("n1", 1000, [device(energy_mj=5), other])
    own.facts("n1", 1060, [other])
    back = own.facts("n1", 1120, [device(energy_mj=9_000), other])
    assert (sampled(back)[1].interval_s, sampled(back)[1].gpus[0].energy_mj, back[1]) == (60, None, [])
    assert sampled(own.facts("n1", 1180, [device(energy_mj=9_010)]))[1].gpus[0].energy_mj == 10


def test_energy_is_the_difference_of_a_counter_and_unknown_when_it_began_anew() -> None:
    own = readings()
    energies = []
    for at_s, counter in ((0, 1000), (1, 1500), (2, 200), (3, 260), (4, None), (5, 300), (6, 310)):
        facts = own.facts("n1", 1000 + at_s, [device(energy_mj=counter)])
        energies.append(sampled(facts)[1].gpus[0].energy_mj)
        assert [code for code, _ in facts[1]] == (["counter-reset"] if counter == 200 else [])
    assert energies == [None, 500, None, 60, None, None, 10], "40 is of two seconds, and a sample of one"


@given(st.lists(st.integers(0, 2**63), min_size=1, max_size=20))
def test_no_interval_has_negative_energy(counters: list[int]) -> None:
    own = readings()
    for at_s, counter in enumerate(counters):
        energy = sampled(own.facts("n1", 1000 + at_s, [device(energy_mj=counter)]))[1].gpus[0].energy_mj
        assert energy is None or energy >= 0


def test_trouble_is_told_once_and_a_clean_check_ends_it() -> None:
    own = readings()
    kinds = []
    for at_s, (pending, failed) in enumerate(
        [
            (False, False),
            (True, False),
            (True, False),
            (True, True),
            (None, True),
            (False, True),
            (False, False),
            (False, False),
        ]
    ):
        facts = own.facts("n1", 1000 + at_s, [device(remap_pending=pending, remap_failed=failed)])[0][1:]
        kinds.append([event.data.kind for event, _ in facts if isinstance(event.data, HealthObserved)])
    assert kinds == [[], ["remap_pending"], [], ["remap_failed"], [], [], ["clean"], []]


def test_a_host_is_named_by_the_record_else_by_the_person_else_not_at_all() -> None:
    assert readings().host("n7") == "n7"
    assert readings().host(None) == "n1"
    with pytest.raises(BadRecord) as caught:
        Readings("dcgm", ImportOptions()).host("")
    assert caught.value.code == "no-host"
    with pytest.raises(Refused, match="--host"):
        Readings("dcgm", ImportOptions(host="a\nb"))


@pytest.mark.parametrize("value", ["-1", "NaN", "Infinity", "1e19", "101"])
def test_a_value_that_cannot_be_was_not_measured(value: str) -> None:
    found, odd = measured("util", Decimal(value), 100)
    assert found is None
    assert odd is not None
    assert odd[0] == "impossible-value"
    assert measured("util", Decimal(100), 100) == (Decimal(100), None)
