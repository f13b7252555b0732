"""The collector rests, and is as it was afterwards."""

import gc

import pytest

from gpuledger.kernel.collecting import without_collecting, without_cycles


def fail(seen: list[bool]) -> None:
    with without_collecting():
        seen.append(gc.isenabled())
        raise KeyError


def test_the_collector_rests_and_comes_back_even_after_an_error() -> None:
    seen: list[bool] = []
    assert gc.isenabled()
    with pytest.raises(KeyError):
        fail(seen)
    assert (seen, gc.isenabled()) == ([False], True)


def test_what_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collecting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_was_made_without_cycles_is_not_looked_through_when_the_collector_is_on_again() -> None:
    gc.collect()
    with without_cycles():
        made = [[n] for n in range(5000)]
        assert gc.get_count()[0] >= len(made)
    assert gc.isenabled()
    assert gc.get_count()[0] < len(made)
    assert gc.get_freeze_count() == 0


def test_what_somebody_set_aside_stays_there() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with without_cycles():
            pass
        assert gc.get_freeze_count() >= before > 0
    finally:
        gc.unfreeze()
