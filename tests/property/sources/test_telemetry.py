"""Whatever stands in a scrape, table, document or log: each record is a fact or a fault, and nothing is negative."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.events.envelope import decode
from gpuledger.events.telemetry import Sampled, check
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

OPTIONS = ImportOptions(timezone="Europe/Berlin", host="n1", at_s=1_700_000_000)

SEEDS = {
    "dcgm": "h100.prom",
    "nvidia-smi-csv": "h100-query.csv",
    "nvidia-smi-xml": "microsoft-pai/nvidia_smi_outdated_gpu.xml",
    "xid-log": "gpud-xid/dmesg-with-xid-119.log",
}
"""Source -> a real file whose bytes are changed."""

TOKENS = [
    b"", b" ", b"\n", b"\0", b"\xff", b"{", b"}", b'"', b"<", b">", b"&", b"-1", b"NaN", b"9223372036854775794",
    b"N/A", b"ERR!", b"99999999999999999999", b"# time 2026-11-30T12:00:00Z\n", b"# time x\n", b"\xe2\x80\xae",
    b"</nvidia_smi_log>", b"NVRM: Xid (PCI:0000:9b:00): 79\n", b"1e999", b"2017",
]  # fmt: skip

within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
changes = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.sampled_from(TOKENS) | st.binary(max_size=12)),
    min_size=1,
    max_size=8,
)


def changed(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """Put something else in place of a few bytes, here and there."""
    for where, length, token in changes:
        at = int(where * len(content))
        content = content[:at] + token + content[at + length :]
    return content


def checked(name: str, items: list[Translated | Fault]) -> None:
    for item in items:
        if isinstance(item, Fault):
            assert f":{item.line}: " in item.message or item.code == "record-too-long"
            context = msgspec.json.decode(msgspec.json.encode(item.context))
            with pytest.raises(BadRecord):
                source(name).retry(item.raw, context)
            continue
        assert item.events
        for event, value in item.events:
            assert decode(value) == event
            if isinstance(event.data, Sampled):
                check(event.data)
                assert event.data.interval_s > 0
                for gpu in event.data.gpus:
                    assert all(v is None or v >= 0 for v in (gpu.energy_mj, gpu.power_w, gpu.memory_mib))


def found(name: str, path: Path) -> list[Translated | Fault]:
    try:
        return list(source(name).read(path, OPTIONS))
    except Refused:
        return []


@pytest.mark.parametrize("name", SEEDS)
@within
@given(changes=changes)
def test_mutated_real_records_are_facts_or_faults(
    tmp_path: Path, repository: Path, name: str, changes: list[tuple[float, int, bytes]]
) -> None:
    seed = (repository / "tests/fixtures/sources/telemetry" / SEEDS[name]).read_bytes()
    content = changed(seed[:8000] if name != "nvidia-smi-xml" else seed, changes)
    (tmp_path / "f").write_bytes(content)
    items = found(name, tmp_path / "f")
    checked(name, items)
    ids = [
        (event.source, event.id) for item in items if isinstance(item, Translated) for event, _ in item.events
    ]
    told = [id_ for id_ in ids if "/xid" not in id_[1]]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("name", SEEDS)
@within
@given(
    content=st.binary(max_size=400) | st.text(max_size=200).map(lambda text: text.encode(errors="replace"))
)
def test_arbitrary_bytes_crash_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    checked(name, found(name, tmp_path / "f"))


@pytest.mark.parametrize("name", SEEDS)
def test_reading_again_gives_the_same_events(repository: Path, name: str) -> None:
    path = repository / "tests/fixtures/sources/telemetry" / SEEDS[name]
    first, second = (
        [pair for item in found(name, path) if isinstance(item, Translated) for pair in item.events]
        for _ in range(2)
    )
    assert first == second != []
