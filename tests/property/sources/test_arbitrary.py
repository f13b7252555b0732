"""Whatever the bytes are, a source raises nothing but a refusal of the file, and loses no line."""

import gzip
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.sources.seeds import SEEDS, Seed, check_retry

from gpuledger.events.envelope import decode
from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import names, source

TABLES = [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.delimiter]
LINES = [pytest.param(seed, id=str(seed)) for seed in SEEDS if seed.entry.records == "lines"]

cells = st.one_of(
    st.sampled_from(
        [
            "",
            "0",
            "1",
            "66.0",
            "-1",
            "1e9",
            "2017-10-09 07:01:55",
            "1675777167",
            "node1",
            "node1/0:E1",
            "running",
        ]
    ),
    st.integers(-10, 2**70).map(str),
    st.decimals(allow_nan=True).map(str),
    st.datetimes().map(str),
    st.text(max_size=8),
)
rows = st.one_of(
    st.lists(cells, min_size=1, max_size=14).map(
        lambda row: [cell.encode(errors="surrogatepass") for cell in row]
    ),
    st.binary(max_size=60).map(lambda row: [row]),
)
within = settings(
    # Every test here runs for every source: a fifth of the usual examples for each.
    max_examples=max(1, settings.default.max_examples // 5),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def check(name: str, items: list[Translated | Fault]) -> None:
    for item in items:
        if isinstance(item, Translated):
            assert item.events
            for event, value in item.events:
                assert decode(value) == event
                if name != "events" and (account := getattr(event.data, "account", None)) is not None:
                    check_path(account)
        else:
            assert f":{item.line}: " in item.message
            check_retry(item, name)


def content_of(seed: Seed, lines: list[bytes]) -> bytes:
    return seed.head + b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize("name", names())
@within
@given(content=st.binary(max_size=400), packed=st.booleans())
def test_arbitrary_bytes_create_nothing(tmp_path: Path, name: str, content: bytes, *, packed: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content) if packed else content)
    options = next(seed.options for seed in SEEDS if seed.source == name)
    with suppress(Refused):
        items = list(source(name).read(path, options))
        assert all(isinstance(item, Fault) for item in items)
        check(name, items)


@pytest.mark.parametrize("seed", TABLES)
@within
@given(lines=st.lists(rows, max_size=6))
def test_arbitrary_rows_are_facts_or_faults(tmp_path: Path, seed: Seed, lines: list[list[bytes]]) -> None:
    content = content_of(seed, [seed.delimiter.join(line) for line in lines])
    items = list(source(seed.source).read(seed.write(tmp_path, content), seed.options))
    check(seed.source, items)
    physical = content.split(b"\n")[seed.entry.head : -1]
    told = {item.line for item in items}
    for number, line in enumerate(physical, start=seed.entry.head + 1):
        # Where a line is an object squeue's rows may be objects all of them, and one that begins with # holds none.
        is_remark = seed.source == "slurm-squeue-text" and line.lstrip().startswith(b"#") and b"{" in content
        if line.strip() and not seed.entry.silent and not is_remark:
            assert number in told


@pytest.mark.parametrize("seed", TABLES)
@within
@given(data=st.data())
def test_rows_of_the_right_width_are_facts_or_faults(tmp_path: Path, seed: Seed, data: st.DataObject) -> None:
    row = seed.sample[0].split(seed.delimiter)
    for at in data.draw(st.sets(st.integers(0, len(row) - 1), min_size=1)):
        row[at] = data.draw(cells).encode(errors="surrogatepass")
    path = seed.write(tmp_path, content_of(seed, [seed.delimiter.join(row)]))
    check(seed.source, list(source(seed.source).read(path, seed.options)))


@pytest.mark.parametrize("seed", LINES)
@within
@given(data=st.data())
def test_a_damaged_copy_of_a_real_file_loses_no_line_before_the_damage(
    tmp_path: Path, seed: Seed, data: st.DataObject
) -> None:
    part = seed.put_together(seed.sample[:40])
    content = bytearray(gzip.compress(part))
    at = data.draw(st.integers(10, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    with suppress(Refused):  # when the damage reaches the header
        items = list(source(seed.source).read(seed.write(tmp_path, bytes(content)), seed.options))
        faults = sum(isinstance(item, Fault) and item.code.endswith("-gzip") for item in items)
        assert faults == (not is_whole(content, part))
        check(seed.source, items)


def is_whole(content: bytearray, part: bytes) -> bool:
    """Whether the damage fell on the bits between the last deflate block and its byte's end, which say nothing."""
    try:
        return gzip.decompress(content) == part
    except (OSError, EOFError, zlib.error):
        return False


@pytest.mark.parametrize("name", names())
@within
@given(raw=st.binary(max_size=100), context=st.dictionaries(st.text(max_size=8), st.integers() | st.text()))
def test_a_retry_with_any_context_is_refused_politely(
    name: str, raw: bytes, context: dict[str, object]
) -> None:
    with pytest.raises(BadRecord):
        source(name).retry(raw, context)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Apia"])
@pytest.mark.parametrize("seed", TABLES)
def test_another_zone_and_cluster_change_no_count(tmp_path: Path, seed: Seed, zone: str) -> None:
    path = seed.write(tmp_path, seed.put_together(seed.sample))
    usual = list(source(seed.source).read(path, seed.options))
    items = list(source(seed.source).read(path, replace(seed.options, cluster="west", timezone=zone)))
    check(seed.source, items)
    assert [type(item) for item in items] == [type(item) for item in usual]
    clusters = {
        event.data.cluster  # type: ignore[attr-defined]
        for item in items
        if isinstance(item, Translated)
        for event, _ in item.events
    }
    assert clusters == {"west"}
