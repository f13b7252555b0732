"""Whatever the bytes are, a source raises nothing but a refusal of the header, and loses no line."""

import gzip
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuledger.events.envelope import decode
from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.clustercockpit import _Jobs as ClusterCockpitJobs
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import names, source

HEADERS = {
    "philly": ["timestamp,duration,num_gpus,gpu_time,cluster"],
    "clustercockpit": [
        ",".join(ClusterCockpitJobs.required),
    ],
    "openb": [
        "name,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time",
        "sn,cpu_milli,memory_mib,gpu,model",
    ],
}
KINDS = [(name, header) for name in HEADERS for header in HEADERS[name]]

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
    st.lists(cells, min_size=1, max_size=14).map(lambda row: ",".join(row).encode(errors="surrogatepass")),
    st.binary(max_size=60),
)
within = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
options = st.builds(
    ImportOptions,
    cluster=st.sampled_from([None, "west"]),
    timezone=st.sampled_from([None, "America/Los_Angeles", "Pacific/Apia"]),
)


def check(name: str, items: list[Translated | Fault]) -> None:
    for item in items:
        if isinstance(item, Translated):
            assert item.events
            for event, value in item.events:
                assert decode(value) == event
                if (account := getattr(event.data, "account", None)) is not None:
                    check_path(account)
        else:
            assert f":{item.line}: " in item.message
            context = msgspec.json.decode(msgspec.json.encode(item.context))
            with pytest.raises(BadRecord) as caught:
                source(name).retry(item.raw, context)
            assert caught.value.code in {item.code, "partial-line"}


@pytest.mark.parametrize("name", names())
@within
@given(content=st.binary(max_size=400), packed=st.booleans())
def test_arbitrary_bytes_are_refused(tmp_path: Path, name: str, content: bytes, *, packed: bool) -> None:
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(Refused):
        list(source(name).read(path, ImportOptions()))


@pytest.mark.parametrize(("name", "header"), KINDS)
@within
@given(lines=st.lists(rows, max_size=6), chosen=options)
def test_arbitrary_rows_are_facts_or_faults(
    tmp_path: Path, name: str, header: str, lines: list[bytes], chosen: ImportOptions
) -> None:
    content = header.encode() + b"\n" + b"".join(line + b"\n" for line in lines)
    (tmp_path / "f").write_bytes(content)
    items = list(source(name).read(tmp_path / "f", chosen))
    check(name, items)
    physical = content.split(b"\n")[1:-1]
    told = {item.line for item in items}
    for number, line in enumerate(physical, start=2):
        if line.removesuffix(b"\r") and "sn," not in header:  # hosts without GPUs are passed over
            assert number in told


@pytest.mark.parametrize(("name", "header"), KINDS)
@within
@given(data=st.data())
def test_rows_of_the_right_width_are_facts_or_faults(
    tmp_path: Path, name: str, header: str, data: st.DataObject
) -> None:
    width = header.count(",") + 1
    line = ",".join(data.draw(st.lists(cells, min_size=width, max_size=width)))
    (tmp_path / "f").write_bytes(header.encode() + b"\n" + line.encode(errors="surrogatepass") + b"\n")
    check(name, list(source(name).read(tmp_path / "f", data.draw(options))))


@pytest.mark.parametrize(("name", "file"), [("philly", "philly"), ("clustercockpit", "alex")])
@within
@given(data=st.data())
def test_a_damaged_copy_of_a_real_file_loses_no_line_before_the_damage(
    tmp_path: Path, repository: Path, name: str, file: str, data: st.DataObject
) -> None:
    whole = gzip.decompress((repository / f"services/gpuledger/demo/data/{file}.csv.gz").read_bytes())
    part = b"".join(whole[:40_000].splitlines(keepends=True)[:60])
    content = bytearray(gzip.compress(part))
    at = data.draw(st.integers(10, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (tmp_path / "whole").write_bytes(part)
    (tmp_path / "f").write_bytes(content)
    with suppress(Refused):  # when the damage reaches the header
        items = list(source(name).read(tmp_path / "f", ImportOptions()))
        faults = sum(isinstance(item, Fault) and item.code.endswith("-gzip") for item in items)
        assert faults == (not is_whole(content, part))
        check(name, items)


def is_whole(content: bytearray, part: bytes) -> bool:
    """Whether the damage fell on the bits between the last deflate block and its byte's end, which say nothing."""
    try:
        return gzip.decompress(content) == part
    except (OSError, EOFError, zlib.error):
        return False


@pytest.mark.parametrize("name", names())
@given(raw=st.binary(max_size=100), context=st.dictionaries(st.text(max_size=8), st.integers() | st.text()))
def test_a_retry_with_any_context_is_refused_politely(
    name: str, raw: bytes, context: dict[str, object]
) -> None:
    with pytest.raises(BadRecord):
        source(name).retry(raw, context)
