"""Work that makes many values at once, while the collector of reference cycles does not look through them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Keep the collector at rest meanwhile; use it where nothing that is made refers to itself.

    Values are freed by their counts all the same. The collector is as it was afterwards; threads that run beside do
    without it for that time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def without_cycles() -> Iterator[None]:
    """Keep the collector at rest meanwhile, and from looking through what was made when that is over.

    Use it only where *nothing* that is made refers to itself, garbage included: all of it is taken for old, among which
    the collector seldom looks. It would otherwise look through everything at once as soon as it is on again.
    """
    was_on = gc.isenabled()
    with without_collecting():
        yield
        if was_on and not gc.get_freeze_count():  # what somebody else set aside stays there
            gc.freeze()
            gc.unfreeze()
