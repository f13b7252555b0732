"""Real records of every source, mutated: never a crash, never a stall, never a negative charge or one made twice.

10^5 mutated records of each source in the full form. The mutations are drawn from a fixed seed, so that whatever is
found once is found again.
"""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.property.sources.mutations import mutated
from tests.property.sources.seeds import SEEDS, Seed, check_retry

from gpuledger.events.envelope import decode
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.host import HostFact
from gpuledger.events.telemetry import Sampled
from gpuledger.events.telemetry import check as check_sample
from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import Unfolding
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import names, source

MUTATED = {"short": 500, "full": 100_000}
"""Records of each source, over all of its seeds."""

BATCH = 100
"""Records in one file."""

SECONDS_MAX = 10.0
"""Of processor time for one file: far more than any takes, far less than what never ends."""

CASES = [pytest.param(seed, id=str(seed)) for seed in SEEDS]


def draw(seed: Seed, chance: random.Random, *, is_json: bool = True) -> bytes:
    """Return a mutated record; a member of a JSON document is one that leaves the document whole, or that does not."""
    while True:
        record = mutated(chance.choice(seed.sample), seed.sample, chance)
        if seed.entry.records != "members" or is_json == _is_json(record):
            return record


def _is_json(record: bytes) -> bool:
    try:
        msgspec.json.decode(record, type=msgspec.Raw)
        msgspec.json.decode(b"[" + record + b"]", type=tuple[msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True


def read(
    seed: Seed, folder: Path, records: Sequence[bytes], head: bytes | None = None
) -> list[Translated | Fault]:
    """Read a file of such records, with another head if one is given; one that is refused as a whole holds none."""
    content = seed.put_together(records)
    path = seed.write(folder, content if head is None else head + content[len(seed.head) :])
    began = time.process_time()
    try:
        return list(source(seed.source).read(path, seed.options))
    except Refused as refused:
        check_refusal(seed, refused, head)
        return []
    finally:
        assert time.process_time() - began < SECONDS_MAX


def check_refusal(seed: Seed, refused: Refused, head: bytes | None) -> None:
    """A document is refused as a whole, or a file with another head; no line takes others with it."""
    assert seed.entry.records in {"members", "whole"} or head is not None
    assert refused.hint


def identities(items: Sequence[Translated | Fault]) -> dict[tuple[str, str], bytes]:
    """Return what a ledger would know afterwards: each identity with the last body that it came with."""
    understood = (item for item in items if isinstance(item, Translated))
    return {(event.source, event.id): event.digest for item in understood for event, _ in item.events}


def charges(items: Sequence[Translated | Fault]) -> dict[tuple[str, str, str], int]:
    """Return the gpu_ms of every run; that of a run is never negative, and none of its seconds counts twice."""
    unfolding: dict[tuple[str, str], Unfolding] = {}
    seen: set[tuple[str, str, bytes]] = set()
    for item in items:
        for event, value in item.events if isinstance(item, Translated) else ():
            assert decode(value) == event
            assert 0 <= event.at_s < END_OF_TIME_S
            if isinstance(event.data, HostFact):
                assert event.data.gpus >= 0
            if isinstance(event.data, Sampled):
                check_sample(event.data)
                assert event.data.interval_s > 0
            fact, identity = event.data, (event.source, event.id, event.digest)
            if isinstance(fact, WorkloadFact) and identity not in seen:
                seen.add(identity)
                known = Known(fact, event.at_s, event.source, event.digest)
                unfolding.setdefault((fact.cluster, fact.workload), Unfolding()).add(known)
    amounts: dict[tuple[str, str, str], int] = {}
    for (cluster, workload), facts in unfolding.items():
        until_s: dict[str, int] = {}
        for segment in sorted(facts.history().segments):
            end_s = segment.from_s if segment.to_s is None else segment.to_s
            assert segment.gpus_milli >= 0
            assert until_s.get(segment.run, 0) <= segment.from_s <= end_s
            until_s[segment.run] = end_s
            key = (cluster, workload, segment.run)
            amounts[key] = amounts.get(key, 0) + segment.gpus_milli * (end_s - segment.from_s)
    return amounts


def check_faults(seed: Seed, items: Sequence[Translated | Fault]) -> None:
    """Each fault says where and what to do, and that again when it is read again."""
    for fault in items:
        if isinstance(fault, Fault):
            assert f":{fault.line}: " in fault.message
            assert fault.code
            assert fault.hint
            check_retry(fault, seed.source)


@pytest.mark.timeout(
    3600
)  # the full form takes a quarter of an hour for some sources, on a busy machine longer
@pytest.mark.parametrize("seed", CASES)
def test_mutated_records_are_facts_or_faults_and_charge_nothing_twice(
    tmp_path: Path, seed: Seed, test_form: str
) -> None:
    shares = sum(other.source == seed.source for other in SEEDS)
    chance = random.Random(str(seed))
    size = 1 if seed.entry.records == "whole" else BATCH
    for _ in range(max(1, MUTATED[test_form] // shares // size)):
        records = [draw(seed, chance) for _ in range(size)]
        items = read(seed, tmp_path, records)
        charged = charges(items)
        assert all(amount >= 0 for amount in charged.values())
        check_faults(seed, items)
        again = read(seed, tmp_path, records)
        assert identities(again) == identities(items)
        assert charges([*items, *again]) == charged, "what is read twice is charged once"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.entry.records == "members"]
)
def test_a_document_that_is_none_any_more_is_refused_whole_or_read(tmp_path: Path, seed: Seed) -> None:
    chance = random.Random(str(seed))
    for _ in range(BATCH):
        items = read(seed, tmp_path, [*seed.sample, draw(seed, chance, is_json=False)])
        charges(items)
        check_faults(seed, items)


@pytest.mark.parametrize("seed", [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.entry.head])
def test_a_file_whose_beginning_is_another_is_refused_or_read(tmp_path: Path, seed: Seed) -> None:
    chance = random.Random(str(seed))
    for _ in range(BATCH):
        items = read(seed, tmp_path, seed.sample[:5], mutated(seed.head, [seed.head], chance))
        charges(items)
        check_faults(seed, items)


@pytest.mark.parametrize("seed", CASES)
def test_the_seed_itself_is_read_and_its_records_twice_over_are_no_others(tmp_path: Path, seed: Seed) -> None:
    items = read(seed, tmp_path, seed.sample)
    assert any(isinstance(item, Translated) for item in items)
    if seed.entry.records == "whole" or seed.entry.keyless:
        return
    in_place = [record for record in seed.sample for _ in range(2)]
    twice = read(seed, tmp_path, in_place if seed.entry.ordered else [*seed.sample, *seed.sample])
    assert charges(twice) == charges(items)
    assert identities(twice).keys() == identities(items).keys()


def test_every_source_has_a_seed() -> None:
    assert {seed.source for seed in SEEDS} == set(names())
