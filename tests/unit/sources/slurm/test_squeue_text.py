from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.slurm.live import FIXTURES, codes, events, fault, read, read_text

from gpuledger.events.workload import Located
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, Translated
from gpuledger.sources.registry import source

SOURCE = "slurm-squeue-text"
HEADER = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|SUBMIT_TIME|START_TIME|END_TIME|NODELIST|REASON|TRES_ALLOC|ACCOUNT\n"
TIMES = "2026-11-29T14:53:50|2026-11-29T14:54:00|N/A"
RUNNING = f"77|77|N/A|RUNNING|{TIMES}|n1|None|gres/gpu=8|proj\n"
WAITING = f"70_[2-9%4]|70|2-9%4|PENDING|{TIMES}||Priority|gres/gpu=2|proj\n"
TASK = f"70_1|70|1|RUNNING|{TIMES}|n2|None|gres/gpu=2|proj\n"
OBJECT = (
    '{"JobID": 77, "ARRAY_TASK_ID": "N/A", "state": "RUNNING", "submit_time": "2026-11-29T14:53:50",'
    ' "start_time": "2026-11-29T14:54:00", "nodelist": "n1", "tres_alloc": "gres/gpu=8", "account": "proj"}'
)


def test_a_monitor_without_a_header_is_read() -> None:
    found = events(read(SOURCE, "gcm-squeue.txt", cluster="gcm"))
    assert [
        (event.name.removeprefix("workload."), event.data.workload, event.data.gpus_milli)
        for event in found
        if not isinstance(event.data, Located)
    ] == [
        ("submitted", "45704744-1744292679", 2000),
        ("started", "45704744-1744292679", 2000),
        ("submitted", "42953390_320-1741294799", 1000),
        ("started", "42953390_320-1741294799", 1000),
        ("submitted", "42956774_3-1741320946", 256_000),
        ("started", "42956774_3-1741320946", 256_000),
        ("submitted", "22783212-1706674017", 0),
        ("submitted", "42271120_7-1740583754", 160_000),
    ]
    assert [len(event.data.hosts) for event in found if event.name == "workload.started"] == [1, 1, 32]
    assert [(e.data.workload, e.data.handles) for e in found if isinstance(e.data, Located)] == [
        ("42953390_320-1741294799", ["job/42953598"]),
        ("42956774_3-1741320946", ["job/42956774"]),
    ]
    assert [event.data.attempt for event in found if event.name == "workload.started"] == [2, 2, 7]


def test_every_column_of_squeue_is_read_and_none_tells_what_is_held() -> None:
    items = read(SOURCE, "lab-squeue-all.psv.gz", cluster="ai2test")
    assert len(items) == 29
    # 5 and 24 never started: of them it is known that they hold nothing.
    assert codes(items) == ["gpus-not-tracked"] * 27
    found = events(items)
    assert {event.name for event in found} == {"workload.submitted", "workload.ended"}
    known = {
        event.data.workload
        for event in events(read("slurm-squeue-json", "../slurm/captures/squeue-live.json.gz"))
    }
    assert {event.data.workload for event in found} == known


def test_an_object_per_line_needs_the_times_of_a_job() -> None:
    items = read(SOURCE, "rivos-squeue-fallback.txt")
    assert codes(items) == ["missing-value"] * 6 + ["bad-json"] * 2
    assert [item.line for item in items] == [1, 2, 3, 4, 5, 6, 8, 9]


def test_an_object_per_line_is_a_job_when_it_tells_enough(tmp_path: Path) -> None:
    objects = [event.id for event in events(read_text(SOURCE, tmp_path, OBJECT + "\n# a remark\n"))]
    assert objects == [event.id for event in events(read_text(SOURCE, tmp_path, HEADER + RUNNING))]


@pytest.mark.parametrize("broken", [OBJECT[:40], "x" + OBJECT, OBJECT[1:]])
def test_a_first_line_that_is_broken_takes_no_other_with_it(tmp_path: Path, broken: str) -> None:
    fault, good = read_text(SOURCE, tmp_path, f"{broken}\n{OBJECT}\n")
    assert isinstance(fault, Fault)
    assert fault.code == "bad-json"
    assert isinstance(good, Translated)


def test_of_an_array_as_many_tasks_wait_as_may_start(tmp_path: Path) -> None:
    waiting, _ = read_text(SOURCE, tmp_path, HEADER + WAITING + TASK)
    assert [event.data.workload for event in events([waiting])] == [f"70_{n}-1795964030" for n in (2, 3, 4)]


def test_two_characters_between_the_fields_keep_bars_in_names(tmp_path: Path) -> None:
    text = (HEADER + RUNNING).replace("|", "|#").replace("proj", "pr|oj")
    assert events(read_text(SOURCE, tmp_path, text))[0].data.account == "slurm/pr%7Coj"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEADER + RUNNING.replace("proj", "pr|oj") + RUNNING, "wrong-columns"),
        (HEADER + RUNNING.replace("RUNNING", "ASLEEP") + RUNNING, "unknown-state"),
        (OBJECT.replace("RUNNING", "ASLEEP") + "\n" + OBJECT, "unknown-state"),
        (OBJECT + "\n" + OBJECT.replace('"n1"', '"n"1"'), "bad-json"),
        (OBJECT + "\n[1]", "bad-json"),
    ],
)
def test_a_broken_line_is_a_fault_that_a_retry_reads_alike(tmp_path: Path, text: str, code: str) -> None:
    items = read_text(SOURCE, tmp_path, text)
    assert code in codes(items)
    found = fault(items)
    context = msgspec.json.decode(msgspec.json.encode(found.context))
    with pytest.raises(BadRecord) as caught:
        source(SOURCE).retry(found.raw, context)
    assert caught.value.code == code
    good = RUNNING.strip() if "columns" in context else OBJECT
    assert len(source(SOURCE).retry(good.encode(), context).events) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "jobs": []}', "is one JSON document"),
        ('{"meta": {}, "jobs": []}', "is one JSON document"),
        ("JOBID|STATE|SUBMIT_TIME|START_TIME\n", "missing ARRAY_JOB_ID and ARRAY_TASK_ID"),
        ("JOBARRAYID|STATE|SUBMIT_TIME\n", "missing START_TIME"),
        ("JOBARRAYID|ST|SUBMIT_TIME|START_TIME\n", "missing STATE"),
        ("JOBID NAME USER\n", "no listing"),
        ("a|#b|#c\n", "missing STATE"),
        ("", "is empty"),
    ],
)
def test_what_tells_too_little_is_refused_with_what_to_ask_for(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(Refused, match=message) as caught:
        read_text(SOURCE, tmp_path, text)
    assert caught.value.hint


def test_the_columns_to_ask_for_are_those_that_are_read(tmp_path: Path) -> None:
    """As the long format prints them: the header of JobArrayID is JOBID, and so on."""
    header = (
        "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|STATE|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|END_TIME|RESIZE_TIME|TIME_LIMIT|USER|"
        "ACCOUNT|PARTITION|QOS|NODELIST|REASON|TRES_ALLOC|TRES_PER_JOB|TRES_PER_NODE|NODES|RESTART_COUNT|\n"
    )
    row = (
        "70_1|70|1|RUNNING|2026-11-29T14:53:50|N/A|2026-11-29T14:54:00|N/A|N/A|1:00:00|ada|proj|gpu|normal|n2|None|"
        "gres/gpu=2|N/A|gres/gpu:2|1|0|\n"
    )
    found = events(read_text(SOURCE, tmp_path, header + row))
    assert [(event.name, event.data.gpus_milli) for event in found] == [
        ("workload.submitted", 2000),
        ("workload.started", 2000),
    ]


def test_the_size_is_that_on_disk() -> None:
    path = FIXTURES / "gcm-squeue.txt"
    assert source(SOURCE).size(path) == path.stat().st_size
