"""Instances of the PAI trace hold what their task planned, from their start to their end."""

from pathlib import Path

import pytest
from tests.unit.sources.rows import codes, data, events, only
from tests.unit.sources.traces import FIXTURES, Items, anomalies, facts, faults, fixture, gpu_seconds

from gpuledger.events.host import Registered
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.kernel.errors import Refused
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.registry import source

JOB = "job1,inst1,user1,Terminated,100.0,1000.0\n"
TASK = "job1,worker,1.0,Terminated,110.0,1000.0,600.0,29.3,50.0,V100\n"
INSTANCE = "job1,worker,i0,w0,inst1,Terminated,120.0,720.0,m1\n"


def trace(folder: Path, *instances: str, job: str = JOB, task: str = TASK) -> Items:
    for name, rows in (("job", job), ("task", task), ("instance", "".join(instances))):
        (folder / f"pai_{name}_table.csv").write_text(rows)
    return list(source("pai").read(folder, ImportOptions()))


def test_the_fixture_has_its_gpu_seconds_by_hand() -> None:
    items = fixture("pai")
    assert gpu_seconds(items) == {
        "job0001:ps:i-ps-0": 0,
        "job0001:worker:i-worker-0": 500 // 2,
        "job0001:worker:i-worker-1": (50 + 400) // 2,
        "job0002:tensorflow:i-tf-0": 8 * 990,
    }
    assert faults(items) == [(7, "unknown-job")]
    assert anomalies(items) == [(6, "fraction-of-milli")]
    assert [fact for item in facts(items)[:3] for fact in data(item)] == [
        Registered(cluster="pai", host=host, gpus=gpus, gpu_model=model)
        for host, gpus, model in (("m1", 2, "MISC"), ("m2", 2, "MISC"), ("m3", 8, "V100"))
    ]


def test_an_instance_is_a_run_of_half_a_gpu(tmp_path: Path) -> None:
    (item,) = facts(trace(tmp_path, INSTANCE))
    submitted, started, ended = events(item)
    named = {"cluster": "pai", "workload": "job1:worker:i0"}
    assert (submitted.at_s, started.at_s, ended.at_s) == (100, 120, 720)
    assert submitted.data == Submitted(
        **named,
        account="pai/user1",
        user="user1",
        gpus_milli=500,
        gpu_model="V100",
        labels={"task": "worker"},
    )
    assert started.data == Started(
        **named, run="w0:120", attempt=1, gpus_milli=500, gpu_model="V100", hosts=["m1"]
    )
    assert ended.data == Ended(**named, run="w0:120", reason="terminated")


def test_an_instance_that_was_tried_again_is_one_workload_with_two_runs(tmp_path: Path) -> None:
    again = INSTANCE.replace("w0", "w1").replace("120.0,720.0", "800.0,900.0")
    items = trace(tmp_path, INSTANCE, again)
    assert gpu_seconds(items) == {"job1:worker:i0": (600 + 100) // 2}
    assert events(facts(items)[0])[0] == events(facts(items)[1])[0], "the submission is one fact"


def test_an_instance_that_outlived_the_trace_is_cut_with_it(tmp_path: Path) -> None:
    (item,) = facts(trace(tmp_path, INSTANCE.replace("720.0", "").replace("Terminated", "Running")))
    ended = data(item)[-1]
    assert (events(item)[-1].at_s, ended.reason, ended.estimated) == (1000, "trace-end", True)


def test_an_instance_that_waits_holds_nothing(tmp_path: Path) -> None:
    (item,) = facts(trace(tmp_path, "job1,worker,i0,,inst1,Waiting,,,\n"))
    _, ended = events(item)
    assert (ended.id, ended.data.run, ended.at_s) == ("job1:worker:i0/ended", None, 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("percent", "milli", "odd"),
    [("", 0, []), ("800.0", 8000, []), ("12.5", 125, []), ("33.333", 333, ["fraction-of-milli"])],
)
def test_gpus_are_percent_of_one(tmp_path: Path, percent: str, milli: int, odd: list[str]) -> None:
    (item,) = facts(trace(tmp_path, INSTANCE, task=TASK.replace("50.0", percent)))
    assert (data(item)[1].gpus_milli, codes(item)) == (milli, odd)


@pytest.mark.parametrize(
    ("instance", "code"),
    [
        (INSTANCE.replace("job1,", "job2,"), "unknown-job"),
        (INSTANCE.replace(",worker,", ",ps,"), "unknown-task"),
        (INSTANCE.replace("720.0", "119.0"), "end-before-start"),
        (INSTANCE.replace("720.0", "later"), "not-a-number"),
        (INSTANCE.replace(",i0,", ",,"), "missing-value"),
        ("job1,worker\n", "wrong-columns"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_dead_letter(tmp_path: Path, instance: str, code: str) -> None:
    assert faults(trace(tmp_path, INSTANCE, instance)) == [(2, code)]


def test_a_retry_knows_job_and_task(tmp_path: Path) -> None:
    fault = only(trace(tmp_path, INSTANCE.replace("720.0", "later")))
    item = source("pai").retry(fault.raw.replace(b"later", b"720.0"), fault.context)
    assert gpu_seconds([item]) == {"job1:worker:i0": 300}


def test_what_is_odd_is_told(tmp_path: Path) -> None:
    (item,) = facts(trace(tmp_path, INSTANCE.replace("120.0", "90.0").replace("Terminated", "Vanished")))
    assert codes(item) == ["unknown-state", "start-before-submit"]


def test_the_instance_table_alone_finds_the_others_beside_it() -> None:
    path = FIXTURES / "pai/pai_instance_table.csv"
    items = list(source("pai").read(path, ImportOptions()))
    assert gpu_seconds(items) == gpu_seconds(fixture("pai"))
    assert (
        source("pai").size(path)
        == path.stat().st_size + (FIXTURES / "pai/pai_machine_spec.csv").stat().st_size
    )
    assert items[-1].bytes_read == source("pai").size(path)


def test_a_machine_that_cannot_be_read_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "pai_machine_spec.csv").write_text("m1,V100,96,512,many\n")
    fault = only(trace(tmp_path, INSTANCE))
    assert fault.code == "not-a-number"
    item = source("pai").retry(b"m1,V100,96,512,8.0", fault.context)
    assert data(item) == [Registered(cluster="pai", host="m1", gpus=8, gpu_model="V100")]


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(Refused, match="is not the folder of the trace"):
        source("pai").read(tmp_path / "other.csv", ImportOptions())
