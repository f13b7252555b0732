"""Whatever values stand in a picture of Slurm's live state, a record is facts or a fault, and nothing is negative."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.sources.test_arbitrary import check
from tests.property.sources.test_mutated import charges

from gpuledger.sources.protocol import ImportOptions, Translated
from gpuledger.sources.registry import source

LIVE = Path(__file__).parents[2] / "fixtures/sources/slurm-live"
within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
options = st.builds(
    ImportOptions,
    cluster=st.sampled_from([None, "west"]),
    timezone=st.sampled_from([None, "America/Los_Angeles", "Pacific/Apia"]),
    at_s=st.sampled_from([None, 0, 1795964000]),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
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
    record: dict[str, Any] = data.draw(
        st.sampled_from(json.loads(gzip.decompress((LIVE / file).read_bytes()))[key])
    )
    changed = data.draw(
        st.dictionaries(
            st.sampled_from(sorted(record)), json_values | boxed | words | st.lists(words), max_size=4
        )
    )
    content = json.dumps({key: [record | changed, record]}, indent=1).encode()
    (tmp_path / "f").write_bytes(content)
    items = list(source(name).read(tmp_path / "f", chosen))
    check(name, items)
    charges(items)
    if chosen.cluster is None or "cluster" not in changed:  # two that name themselves are not one --cluster
        assert isinstance(items[-1], Translated)
