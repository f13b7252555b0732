"""What parsers are held against: a bare read of the same bytes by the library that reads the format.

A bare read makes plain values and throws them away; what it costs is the floor of any reader. A source does more in
two steps, which are measured apart in the same rounds: it understands (bytes to typed jobs: every field checked,
times put into their zone, resources counted), and it makes facts (up to three events of a job, each with its id, its
bytes as they go onto a stream and their digest). The second step is no parser's, and is the larger part.
"""

import gc
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

ROUNDS = 7


class Speed(NamedTuple):
    """How fast the bare read is, and what part of its speed the steps of a source have.

    Args:
        records: How many records were read.
        bare_s: Processor time of the quickest bare read.
        understood: Ratio of the bare read to understanding.
        whole: Ratio of the bare read to the whole source.
    """

    records: int
    bare_s: float
    understood: float
    whole: float

    def __str__(self) -> str:
        rate = self.records / self.bare_s
        return (
            f"bare {rate:,.0f} records/s; understood {rate * self.understood:,.0f}/s (ratio {self.understood:.3f}),"
            f" with their facts {rate * self.whole:,.0f}/s (ratio {self.whole:.3f})"
        )


def turns(records: int, bare: Callable[[], object], whole: Callable[[], object]) -> tuple[float, float]:
    """Return the ratio of the bare read to the whole source, and the records per second of the source."""
    took = _took(bare, whole)
    return median(times[0] / times[1] for times in took), records / min(times[1] for times in took)


def speed(
    records: int, bare: Callable[[], object], understand: Callable[[], object], whole: Callable[[], object]
) -> Speed:
    """Return the medians over rounds in which the three works take turns."""
    took = _took(bare, understand, whole)
    return Speed(
        records,
        min(times[0] for times in took),
        median(times[0] / times[1] for times in took),
        median(times[0] / times[2] for times in took),
    )


def _took(*works: Callable[[], object]) -> list[list[float]]:
    """Return what each work took in each round, one after another.

    Processor time, so that what others do does not count; what slows the machine for a while slows all of them. The
    garbage collector is off: a whole file in plain values would make it the measure of the bare read.
    """
    took = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            times = []
            for work in works:
                began = time.process_time()
                work()
                times.append(time.process_time() - began)
            took.append(times)
    finally:
        gc.enable()
    return took
