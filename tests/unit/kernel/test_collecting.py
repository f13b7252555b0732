"""The collector rests, and is as it was afterwards."""

import gc

import pytest

from gpuledger.kernel.collecting import without_collecting


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
