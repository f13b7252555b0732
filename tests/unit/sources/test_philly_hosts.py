"""Machines of the Philly trace, and the use of their GPUs: what was offline was not idle."""

from decimal import Decimal
from pathlib import Path

import pytest
from tests.unit.sources.rows import data, events, only, read
from tests.unit.sources.traces import anomalies, facts, faults, fixture

from gpuledger.events.host import Registered, StateChanged
from gpuledger.events.telemetry import Sampled
from gpuledger.kernel.errors import Refused
from gpuledger.sources.registry import source

HEAD = b"time,machineId," + b",".join(b"gpu%d_util" % n for n in range(8)) + b"\n"
START_S = 1_507_014_480  # 2017-10-03 00:08:00 PDT


def row(minute: int, *values: str, machine: str = "m29") -> bytes:
    cells = [*values, *[""] * (8 - len(values))]
    return f"2017-10-03 00:{minute:02}:00 PDT,{machine},{','.join(cells)},\n".encode()


def test_a_row_is_a_sample_of_a_minute() -> None:
    first = facts(fixture("philly-json", "cluster_gpu_util.csv"))[0]
    ((event, _),) = first.events
    assert event.at_s == START_S
    assert isinstance(event.data, Sampled)
    assert (event.data.host, event.data.interval_s) == ("m29", 60)
    assert [(gpu.uuid, gpu.gpu_util) for gpu in event.data.gpus][:2] == [
        ("m29/gpu0", Decimal("60.8")),
        ("m29/gpu1", Decimal("99.366666667")),
    ]


def test_a_gpu_that_was_offline_has_no_sample_and_an_idle_one_has_0() -> None:
    items = fixture("philly-json", "cluster_gpu_util.csv")
    ((event, _),) = facts(items)[1].events
    assert isinstance(event.data, Sampled)
    assert "m29/gpu1" not in [gpu.uuid for gpu in event.data.gpus]
    assert event.data.gpus[-1].gpu_util == 0
    assert anomalies(items) == [(3, "gpu-offline"), (5, "gpu-offline")]
    assert faults(items) == [(8, "out-of-bounds")]


def test_a_machine_none_of_whose_gpus_answer_is_unhealthy_until_one_does() -> None:
    items = facts(fixture("philly-json", "cluster_gpu_util.csv"))
    named = {"cluster": "philly-json", "host": "m29", "gpus": 8, "gpu_model": "unknown"}
    offline = StateChanged(**named, state="unhealthy", reason="offline")
    assert [data(item) for item in items[3:5]] == [[offline], [offline]]
    _, back = events(items[5])
    assert (back.at_s, back.data) == (START_S + 240, StateChanged(**named, state="healthy"))


def test_a_machine_with_fewer_gpus_has_fewer(tmp_path: Path) -> None:
    (item,) = facts(read("philly-json", tmp_path / "p", HEAD + row(8, "1.0", "NA")))
    assert [gpu.uuid for gpu in data(item)[0].gpus] == ["m29/gpu0"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (row(8), "missing-value"),
        (row(8, "many"), "not-a-number"),
        (row(8, "-1"), "out-of-bounds"),
        (row(8, "1.0").replace(b"PDT", b"XXX"), "not-a-time"),
        (row(8, "1.0", machine=""), "missing-value"),
        (b"a,b\n", "wrong-columns"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(tmp_path: Path, line: bytes, code: str) -> None:
    items = read("philly-json", tmp_path / "p", HEAD + line + row(9, "1.0"))
    assert faults(items) == [(2, code)]
    again = source("philly-json").retry(row(8, "1.0").strip().removesuffix(b","), only(items).context)
    assert data(again)[0].gpus[0].gpu_util == 1


def test_machines_are_the_inventory() -> None:
    assert [
        fact for item in facts(fixture("philly-json", "cluster_machine_list.csv")) for fact in data(item)
    ] == [
        Registered(cluster="philly-json", host=host, gpus=gpus, gpu_model="unknown")
        for host, gpus in (("m29", 8), ("m30", 2))
    ]


def test_another_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="unknown 'cpu_util'"):
        read("philly-json", tmp_path / "p", b"time,machineId,cpu_util\n2017-11-27 00:04:00 PST,m29,31.845\n")
