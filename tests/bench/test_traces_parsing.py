"""How fast each source of traces makes events, against a bare read of the same bytes.

Bare is what the standard reader of the format does with the file and nothing else: csv.reader for tables, split for
the Standard Workload Format, msgspec for JSON. A source does more: it checks every field in Python, and it builds up
to three events for a record and encodes each with its digest. What the building alone takes is measured beside it: a
source cannot be faster than both together, and is gated on its share of that. The ratio to the bare read is printed,
and gated where it stands: a reader written in C that checks nothing is fifty times faster than any check in Python.
"""

import csv
import io
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.property.sources.seeds import SEEDS, Seed

from gpuledger.events.envelope import Event, make
from gpuledger.sources.protocol import Translated
from gpuledger.sources.registry import source

pytestmark = pytest.mark.bench

RECORDS = {"short": 1_000, "full": 20_000}
ROUNDS = 3
SHARE_MIN = 0.1
"""Of the time of a source, at least this goes into the bare read and into building the events."""

RATIO_MIN = {"csv": 0.004, "split": 0.01, "json": 0.03}
"""Of the speed of the bare read, by kind of reader."""

OWN = frozenset(
    "acme beaker clustercockpit dlrm events helios openb pai philly philly-json swf".split()  # noqa: SIM905 - a list of words
)
CASES = [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.source in OWN]


def best(*works: Callable[[], object]) -> list[float]:
    """Return the shortest processor time of each work, one after another in each of several rounds.

    What others do on the machine does not count, and what slows it for a while slows all of them.
    """
    took: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for times, work in zip(took, works, strict=True):
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    return [min(times) for times in took]


def bare_read(seed: Seed, content: bytes) -> tuple[str, Callable[[], object]]:
    """Return the kind of the bare reader of a format, and a read with it."""
    if seed.entry.records == "members":
        return "json", lambda: msgspec.json.decode(content)
    if content.lstrip().startswith(b"{"):
        return "json", lambda: [msgspec.json.decode(line) for line in content.splitlines()]
    if content.startswith(b";"):
        return "split", lambda: [line.split() for line in content.decode().splitlines()]
    return "csv", lambda: list(csv.reader(io.StringIO(content.decode())))


def build(events: list[Event]) -> None:
    """Build events that are there already once more, as a source does when it has checked the fields."""
    for event in events:
        make(id=event.id, source=event.source, at_s=event.at_s, data=msgspec.structs.replace(event.data))


@pytest.mark.parametrize("seed", CASES)
def test_a_source_spends_its_time_on_reading_and_on_building_events(
    tmp_path: Path, seed: Seed, test_form: str
) -> None:
    records = seed.records(RECORDS[test_form])
    content = seed.put_together([records[n % len(records)] for n in range(RECORDS[test_form])])
    path = seed.write(tmp_path, content)

    def read() -> list[Translated]:
        items = source(seed.source).read(path, seed.options)
        return [item for item in items if isinstance(item, Translated)]

    understood = read()
    events = [event for item in understood for event, _ in item.events]
    kind, bare = bare_read(seed, content)
    bare_s, build_s, source_s = best(bare, lambda: build(events), read)
    ratio, share = bare_s / source_s, (bare_s + build_s) / source_s
    print(
        f"\n{seed}: {RECORDS[test_form] / source_s:,.0f} records/s, {len(events) / source_s:,.0f} events/s;"
        f" bare {kind} read {RECORDS[test_form] / bare_s:,.0f} records/s, ratio {ratio:.3f};"
        f" reading and building alone {share:.2f} of its time, at least {SHARE_MIN} wanted"
    )
    assert understood
    assert ratio >= RATIO_MIN[kind]
    assert share >= SHARE_MIN
