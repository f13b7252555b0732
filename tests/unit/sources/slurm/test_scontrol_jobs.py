import gzip
from pathlib import Path

import msgspec
import pytest
from tests.unit.sources.slurm.live import FIXTURES, codes, events, fault, read, read_text

from gpuledger.events.envelope import Event
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.registry import source

SOURCE = "slurm-scontrol-jobs"
BLOCK = """JobId=77 JobName=train
   UserId=ada(5001) GroupId=ada(5001) MCS_label=N/A
   Priority=1 Nice=0 Account=proj QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:52 TimeLimit=12:00:00 TimeMin=N/A
   SubmitTime=2026-11-29T14:53:50 EligibleTime=2026-11-29T14:53:50
   StartTime=2026-11-29T14:54:00 EndTime=2026-11-30T02:54:00 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-29T14:54:00 Scheduler=Main
   Partition=gpu AllocNode:Sid=login:1
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=n[1-2]
   ReqTRES=cpu=8,gres/gpu=16
   AllocTRES=cpu=8,gres/gpu=16
   JOB_GRES=gpu:h100:16
     Nodes=n[1-2] CPU_IDs=0-3 Mem=0 GRES=gpu:h100:8(IDX:0-7)
   TresPerNode=gres/gpu:8
"""
WAITING = (
    BLOCK.replace("JobId=77", "JobId=77 ArrayJobId=77 ArrayTaskId=2-9%4 ArrayTaskThrottle=4")
    .replace("RUNNING", "PENDING")
    .replace("AllocTRES=cpu=8,gres/gpu=16", "AllocTRES=(null)")
    .replace("NodeList=n[1-2]\n", "NodeList=\n")
)


def what(event: Event) -> tuple[str, str, int, object, object]:
    """Return a fact without what the listing of this version does not tell: what a job asked for that got another."""
    return (
        event.id.rpartition("/")[0],
        event.name,
        event.at_s,
        event.name == "workload.started" and event.data.gpus_milli,
        getattr(event.data, "hosts", None),
    )


@pytest.mark.parametrize(
    ("file", "records", "facts"),
    [
        (
            "lab-scontrol-jobs.txt.gz",
            29,
            {"submitted": 29, "started": 27, "located": 6, "ended": 29, "resumed": 1},
        ),
        ("lab-job-suspended.txt", 1, {"submitted": 1, "started": 1, "suspended": 1}),
        ("gcm-scontrol-all-gpus.txt.gz", 1, {"submitted": 1, "started": 1, "located": 1}),
        ("gcm-scontrol-multi-node.txt.gz", 1, {"submitted": 1, "started": 1}),
        ("gcm-scontrol-no-gpus.txt.gz", 1, {"submitted": 1, "started": 1, "located": 1}),
        ("gcm-scontrol-some-gpus.txt.gz", 1, {"submitted": 1, "started": 1, "located": 1}),
    ],
)
def test_every_job_of_a_real_listing_is_read(file: str, records: int, facts: dict[str, int]) -> None:
    items = read(SOURCE, file)
    assert len(items) == records
    names = [event.name.removeprefix("workload.") for event in events(items)]
    assert {name: names.count(name) for name in names} == facts
    assert not codes(items)


def test_a_listing_tells_the_same_facts_as_json() -> None:
    text = [what(event) for event in events(read(SOURCE, "lab-scontrol-jobs.txt.gz", cluster="ai2test"))]
    document = [
        what(event) for event in events(read("slurm-squeue-json", "../slurm/captures/squeue-live.json.gz"))
    ]
    assert sorted(map(repr, text)) == sorted(map(repr, document))


def test_a_type_that_is_not_tracked_is_told_by_the_hosts() -> None:
    started = events(read(SOURCE, "gcm-scontrol-multi-node.txt.gz"))[1].data
    assert (started.gpus_milli, started.gpu_model, len(started.hosts)) == (64000, "ampere", 8)
    assert started.gpu_uuids is None


@pytest.mark.parametrize("allocated", ["AllocTRES=cpu=8", "AllocTRES=(null)"])
def test_gpus_that_are_not_tracked_are_counted_from_what_each_host_holds(
    tmp_path: Path, allocated: str
) -> None:
    text = BLOCK.replace("AllocTRES=cpu=8,gres/gpu=16", allocated)
    assert events(read_text(SOURCE, tmp_path, text))[1].data.gpus_milli == 16000


def test_hosts_that_do_not_hold_as_much_are_told_apart(tmp_path: Path) -> None:
    each = "     Nodes={} CPU_IDs=0-3 Mem=0 GRES=gpu:h100:{}(IDX:0-{})"
    text = BLOCK.replace("AllocTRES=cpu=8,gres/gpu=16", "AllocTRES=cpu=8,gres/gpu=12").replace(
        each.format("n[1-2]", 8, 7), each.format("n1", 8, 7) + "\n" + each.format("n2", 4, 3)
    )
    started = events(read_text(SOURCE, tmp_path, text))[1].data
    assert (started.gpus_milli, started.host_gpus_milli) == (12_000, {"n1": 8000, "n2": 4000})
    assert events(read_text(SOURCE, tmp_path, BLOCK))[1].data.host_gpus_milli is None


def test_gpus_of_which_nobody_tells_how_many_are_not_none(tmp_path: Path) -> None:
    text = BLOCK.replace(",gres/gpu=16", "").replace("GRES=gpu:h100:8(IDX:0-7)", "GRES=")
    items = read_text(SOURCE, tmp_path, text)
    assert codes(items) == ["gpus-not-tracked"]
    assert [event.name for event in events(items)] == ["workload.submitted"]


def test_a_run_keeps_its_numbers(tmp_path: Path) -> None:
    submitted, started = events(read_text(SOURCE, tmp_path, BLOCK, timezone="Europe/Berlin"))
    assert submitted.data.user == "ada"
    assert submitted.data.time_limit_s == 43200
    assert submitted.data.labels == {"account": "proj", "partition": "gpu", "qos": "normal"}
    assert (submitted.at_s, started.at_s) == (1795964030 - 3600, 1795964040 - 3600)
    assert (started.data.attempt, started.data.hosts) == (3, ["n1", "n2"])


def test_of_an_array_as_many_tasks_wait_as_may_start(tmp_path: Path) -> None:
    running = BLOCK.replace("JobId=77", "JobId=78 ArrayJobId=77 ArrayTaskId=1 ArrayTaskThrottle=4")
    waiting, task = read_text(SOURCE, tmp_path, WAITING + "\n" + running)
    assert [event.data.workload for event in events([waiting])] == [f"77_{n}-1795964030" for n in (2, 3, 4)]
    assert events([task])[1].data.workload == "77_1-1795964030"


def test_the_components_of_a_heterogeneous_job_are_jobs(tmp_path: Path) -> None:
    text = BLOCK.replace("JobId=77", "JobId=78 HetJobId=77 HetJobOffset=1")
    assert {event.data.workload for event in events(read_text(SOURCE, tmp_path, text))} == {"77+1-1795964030"}


def test_a_job_that_depends_on_another_is_not_eligible(tmp_path: Path) -> None:
    text = BLOCK.replace("RUNNING Reason=None", "PENDING Reason=Dependency").replace(
        "EligibleTime=2026-11-29T14:53:50", "EligibleTime=Unknown"
    )
    (submitted,) = events(read_text(SOURCE, tmp_path, text))
    assert submitted.data.eligible_at.year == 2100


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("JobName=train", "JobName=x AllocTRES=gres/gpu=0", "key-twice"),
        ("JobState=RUNNING", "JobState=ASLEEP", "unknown-state"),
        ("JobState=RUNNING", "", "missing-value"),
        ("SubmitTime=2026-11-29T14:53:50", "SubmitTime=Unknown", "missing-value"),
        ("StartTime=2026-11-29T14:54:00", "StartTime=soon", "not-a-time"),
        ("TimeLimit=12:00:00", "TimeLimit=1:2:3:4:5", "not-a-number"),
        ("NodeList=n[1-2]", "NodeList=n[2-1]", "bad-hosts"),
        ("gres/gpu=16\n   JOB", "gres/gpu=many\n   JOB", "not-a-number"),
        ("JobId=77", "JobId=x", "bad-job-id"),
    ],
)
def test_a_block_that_cannot_be_read_is_a_fault_that_a_retry_reads_alike(
    tmp_path: Path, before: str, after: str, code: str
) -> None:
    items = read_text(SOURCE, tmp_path, BLOCK.replace(before, after) + "\n" + BLOCK)
    assert codes(items) == [code]
    assert len(events(items[1:])) == 2
    found = fault(items)
    context = msgspec.json.decode(msgspec.json.encode(found.context))
    with pytest.raises(BadRecord) as caught:
        source(SOURCE).retry(found.raw, context)
    assert caught.value.code == code
    assert len(source(SOURCE).retry(BLOCK.encode(), context).events) == 2


def test_another_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="does not begin with JobId="):
        read_text(SOURCE, tmp_path, gzip.decompress((FIXTURES / "lab-sinfo.json.gz").read_bytes()))
    with pytest.raises(Refused, match="does not begin with JobId="):
        read(SOURCE, "lab-scontrol-nodes.txt")


def test_the_size_is_that_on_disk() -> None:
    path = FIXTURES / "lab-scontrol-jobs.txt.gz"
    assert source(SOURCE).size(path) == path.stat().st_size
