"""A table that is read by column says what it says row by row: the same facts, oddities, faults and dead letters."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.property.sources.mutations import NONSENSE, mutated
from tests.property.sources.seeds import SEEDS, Seed

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources import table
from gpuledger.sources.jobs import UnderstoodJob
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

RECORDS = {"short": 2_000, "full": 100_000}
"""Of each seed, over all shares of mutated ones."""

BATCH = 200
SHARES = (0.0, 0.02, 0.2, 0.7)
"""How many of the records are not as they were: where few are, rows stand by column beside them."""

ZONES = (None, "Asia/Shanghai", "America/Los_Angeles")
BY_COLUMN = {"acme", "clustercockpit", "dlrm", "helios", "openb", "pai", "philly"}
TABLES = [
    pytest.param(seed, id=str(seed))
    for seed in SEEDS
    if seed.source in BY_COLUMN
    and seed.delimiter + seed.entry.mutate.encode()
    and "node_list" not in str(seed)
]


def altered(record: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return a record that went wrong, as often as not in one cell alone."""
    if chance.random() < 0.5:
        return mutated(record, others, chance).replace(b"\n", b"")
    cells = record.split(b",")
    cells[chance.randrange(len(cells))] = chance.choice([*NONSENSE, *chance.choice(others).split(b",")])
    return b",".join(cells).replace(b"\n", b"")


def outcome(items: Sequence[Translated | Fault]) -> list[object]:
    """Return all that a caller can see of records, and what a ledger that refuses them would keep."""
    refused = BadRecord("no", code="no", hint="none")
    return [
        (item, item.as_fault(item.line, refused))
        if isinstance(item, Translated) and item.as_fault is not None
        else item
        for item in items
    ]


def told(item: object) -> object:
    """Leave out what has no equality: the function that makes a fault of a record, which was called."""
    if isinstance(item, tuple):
        understood, fault = item
        return understood.line, understood.events, understood.anomalies, understood.bytes_read, fault
    return item


def read(seed: Seed, path: Path, options: ImportOptions) -> list[object]:
    return [told(item) for item in outcome(list(source(seed.source).read(path, options)))]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", TABLES)
def test_rows_say_by_column_what_they_say_one_by_one(
    tmp_path: Path, seed: Seed, test_form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(str(seed))
    by_column = 0
    at_once = table._at_once

    def counted(*given: object) -> object:
        nonlocal by_column
        *before, jobs, position = given
        found: list[UnderstoodJob | None] = []

        def noted() -> object:
            for job in jobs:  # type: ignore[attr-defined]
                found.append(job)
                yield job

        yield from at_once(*before, noted(), position)  # type: ignore[arg-type]
        by_column += sum(job is not None for job in found)

    for number in range(RECORDS[test_form] // BATCH):
        share, zone = SHARES[number % len(SHARES)], ZONES[number % len(ZONES)]
        records = [
            altered(record, seed.sample, chance) if chance.random() < share else record
            for record in chance.choices(seed.sample, k=BATCH)
        ]
        path = seed.write(tmp_path, seed.put_together(records))
        cluster = chance.choice((None, "west"))
        options = replace(seed.options, cluster=cluster, timezone=zone or seed.options.timezone)
        with monkeypatch.context() as patch:
            patch.setattr(table, "_at_once", counted)
            found = read(seed, path, options)
        with monkeypatch.context() as patch:
            patch.setattr(table, "columns_of", lambda *_: None)
            assert found == read(seed, path, options)
    reads_columns = "vc_state" not in str(seed) and "gpu_number" not in str(seed)
    assert (by_column > RECORDS[test_form] // 20) == reads_columns
