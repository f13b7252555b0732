"""Whatever stands in a picture of Slurm's live state, a record is facts or a fault, and nothing is negative."""

import gzip
import json
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.sources.test_arbitrary import check

from gpuledger.events.workload import WorkloadFact
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.ledger.charges import desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import derive
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

LIVE = Path(__file__).parents[2] / "fixtures/sources/slurm-live"
FORMS = [
    ("slurm-nodes", "lab-scontrol-nodes.txt"),
    ("slurm-nodes", "lab-sinfo.json.gz"),
    ("slurm-nodes", "gcm-sinfo.txt"),
    ("slurm-nodes", "gcm-sinfo-bare.txt.gz"),
    ("slurm-sacctmgr", "lab-sacctmgr-event.psv"),
    ("slurm-sacctmgr", "lab-sacctmgr-assoc.psv"),
    ("slurm-scontrol-jobs", "lab-scontrol-jobs.txt.gz"),
    ("slurm-squeue-json", "lab-squeue-suspended.json.gz"),
    ("slurm-squeue-text", "gcm-squeue.txt"),
    ("slurm-squeue-text", "lab-squeue-all.psv.gz"),
    ("slurm-squeue-text", "rivos-squeue-fallback.txt"),
]
NAMES = sorted({name for name, _ in FORMS})
RECORDS = 4
"""Of a real file so many are mutated at once: enough for them to harm each other."""

within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
options = st.builds(
    ImportOptions,
    cluster=st.sampled_from([None, "west"]),
    timezone=st.sampled_from([None, "America/Los_Angeles", "Pacific/Apia"]),
    at_s=st.sampled_from([None, 0, 1795964000]),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
boxed = st.fixed_dictionaries(
    {"set": st.booleans(), "infinite": st.booleans(), "number": st.integers(-(2**33), 2**33)}
)
words = st.sampled_from(
    [
        "RUNNING",
        "PENDING",
        "CANCELLED",
        "DRAIN",
        "idle",
        "1-9%2",
        "n[1-3]",
        "gres/gpu=3",
        "gpu:h100:2(IDX:0-1)",
        "(null)",
    ]
)
bits = st.one_of(
    st.sampled_from(
        [
            b"|",
            b"=",
            b"\n",
            b"{",
            b"}",
            b"[",
            b",",
            b'"',
            b"gres/gpu=-1",
            b"JobId=",
            b"NodeName=",
            b"%",
            b"\0",
        ]
    ),
    st.binary(max_size=4),
    st.integers(-10, 2**40).map(lambda number: str(number).encode()),
)


def real(file: str) -> bytes:
    """Return a real file; events of hosts with the column that a charge depends on, which it lacks."""
    raw = (LIVE / file).read_bytes()
    if file.endswith("event.psv"):
        header, *rows = raw.splitlines()
        return b"\n".join((header + b"|TRES", *(row + b"|gres/gpu=8" for row in rows), b""))
    return gzip.decompress(raw) if file.endswith(".gz") else raw


def begin(name: str, content: bytes) -> bytes:
    """Return the first records of a real file, whole."""
    if content.lstrip().startswith(b"{\n") or name == "slurm-squeue-json":
        document = json.loads(content)
        key = "jobs" if "jobs" in document else "nodes"
        return json.dumps({key: document[key][:RECORDS]}, indent=1).encode()
    return b"\n".join(content.split(b"\n")[: 120 if b"JobId=" in content else 40])


def read(name: str, path: Path, content: bytes, chosen: ImportOptions) -> list[Translated | Fault]:
    path.write_bytes(content)
    with suppress(Refused):
        return list(source(name).read(path, chosen))
    return []


def check_amounts(items: list[Translated | Fault]) -> None:
    facts: defaultdict[str, list[Known]] = defaultdict(list)
    for item in items:
        for event, _ in item.events if isinstance(item, Translated) else ():
            assert getattr(event.data, "gpus", 0) >= 0
            if isinstance(event.data, WorkloadFact):
                facts[event.data.workload].append(Known(event.data, event.at_s, event.source, event.digest))
    for known in facts.values():
        history = derive(known)
        assert all(gpu_ms > 0 for gpu_ms in desired(history, Calendar()).values())
        assert all(
            span.to_s is None or span.to_s > span.from_s for span in (*history.segments, *history.waits)
        )


@pytest.mark.parametrize("name", NAMES)
@within
@given(content=st.binary(max_size=400), packed=st.booleans(), chosen=options)
def test_arbitrary_bytes_are_refused_or_faults(
    tmp_path: Path, name: str, content: bytes, chosen: ImportOptions, *, packed: bool
) -> None:
    items = read(name, tmp_path / "f", gzip.compress(content) if packed else content, chosen)
    check(name, items)
    assert all(isinstance(item, Fault) for item in items)


@pytest.mark.parametrize(("name", "file"), FORMS)
@within
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), bits), max_size=6), chosen=options)
def test_a_mutated_real_file_is_refused_or_facts_and_faults(
    tmp_path: Path, name: str, file: str, edits: list[tuple[float, int, bytes]], chosen: ImportOptions
) -> None:
    content = bytearray(begin(name, real(file)))
    for where, length, bit in edits:
        at = int(where * len(content))
        content[at : at + length] = bit
    items = read(name, tmp_path / "f", bytes(content), chosen)
    check(name, items)
    check_amounts(items)


@pytest.mark.parametrize(
    ("name", "file", "key"),
    [
        ("slurm-squeue-json", "lab-squeue-suspended.json.gz", "jobs"),
        ("slurm-nodes", "lab-sinfo.json.gz", "nodes"),
    ],
)
@within
@given(data=st.data(), chosen=options)
def test_a_record_with_any_values_is_facts_or_a_fault(
    tmp_path: Path, name: str, file: str, key: str, data: st.DataObject, chosen: ImportOptions
) -> None:
    record: dict[str, Any] = data.draw(st.sampled_from(json.loads(real(file))[key]))
    changed = data.draw(
        st.dictionaries(
            st.sampled_from(sorted(record)), json_values | boxed | words | st.lists(words), max_size=4
        )
    )
    content = json.dumps({key: [record | changed, record]}, indent=1).encode()
    items = read(name, tmp_path / "f", content, chosen)
    check(name, items)
    check_amounts(items)
    assert len(items) >= 1
    assert isinstance(items[-1], Translated)


@pytest.mark.parametrize("name", NAMES)
@given(raw=st.binary(max_size=100), context=st.dictionaries(st.text(max_size=8), st.integers() | st.text()))
def test_a_retry_with_any_context_is_refused_politely(
    name: str, raw: bytes, context: dict[str, object]
) -> None:
    with pytest.raises(BadRecord):
        source(name).retry(raw, context)
