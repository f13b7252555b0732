"""One run of a job, told in every format of Slurm; and what follows from what a source reads of it.

The layouts are the published ones, the values are invented.
"""

import datetime as dt
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuledger.events.envelope import Event, decode
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, derive
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

FIXTURES = Path(__file__).parents[3] / "fixtures/sources/slurm"
ALPHA = ImportOptions(cluster="alpha")
T = 1_793_484_000
"""2026-10-31T22:00:00Z."""

HOUR = 3600
EIGHT = "billing=96,cpu=96,gres/gpu:h100=8,gres/gpu=8,mem=1000G,node=1"


@dataclass(frozen=True, kw_only=True)
class Told:
    """A run; a pending one has neither start nor end, a running one no end."""

    job: int = 4711
    array: int | None = None
    task: int | None = None
    tasks: str | None = None
    leader: int | None = None
    offset: int | None = None
    state: str = "COMPLETED"
    submit: int = T
    eligible: int | None = None
    start: int | None = T + 1800
    end: int | None = T + 1800 + 17_100
    elapsed: int | None = None
    suspended: int = 0
    tres: str | None = EIGHT
    asked: str | None = EIGHT
    account: str = "prog-a"
    user: str = "ada"
    partition: str = "gpu"
    qos: str = "normal"
    nodes: str = "h100-017"
    limit_min: int | None = 480
    cluster: str = "alpha"
    altered: bool = False
    command: str = ""
    restarts: int = 0

    @property
    def ran(self) -> int:
        """What accounting calls elapsed."""
        if self.elapsed is not None:
            return self.elapsed
        return 0 if self.start is None or self.end is None else max(0, self.end - self.start - self.suspended)

    @property
    def number(self) -> str:
        """The job as sacct shows it."""
        if self.tasks is not None:
            return f"{self.array}_[{self.tasks}]"
        if self.task is not None:
            return f"{self.array}_{self.task}"
        return str(self.job) if self.offset is None else f"{self.leader}+{self.offset}"


def traps(number: int, *names: str) -> Callable[[Any], Any]:
    """Mark a test as that of a trap in the formats of several sources."""

    def marked(test: Any) -> Any:  # noqa: ANN401
        for name in names:
            test = pytest.mark.trap(number, name)(test)
        return test

    return marked


def text_time(at_s: int | None, none: str = "Unknown") -> str:
    return none if at_s is None else f"{dt.datetime.fromtimestamp(at_s, dt.UTC):%Y-%m-%dT%H:%M:%S}"


def number(value: int | None) -> dict[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def tres_list(text: str | None) -> list[dict[str, Any]]:
    pairs = (item.split("=") for item in (text or "").split(",") if item)
    return [
        {"type": kind.partition("/")[0], "name": kind.partition("/")[2], "id": 1, "count": int(count)}
        for kind, count in pairs
        if count.isdigit()
    ]


def accounting(told: Told) -> dict[str, Any]:
    """The run as ``sacct --json`` prints it since 23.11."""
    return {
        "job_id": told.job,
        "account": told.account,
        "user": told.user,
        "cluster": told.cluster,
        "partition": told.partition,
        "qos": told.qos,
        "nodes": told.nodes if told.start else "None assigned",
        "array": {
            "job_id": told.array or 0,
            "task_id": number(told.task),
            "task": told.tasks or "",
        },
        "het": {"job_id": told.leader or 0, "job_offset": number(told.offset)},
        "flags": ["JOB_ALTERED"] if told.altered else [],
        "exit_code": {
            "status": ["SUCCESS"],
            "return_code": number(0),
            "signal": {"id": number(None), "name": ""},
        },
        "state": {"current": [told.state], "reason": "None"},
        "submit_line": told.command,
        "steps": [{"tres": {"allocated": tres_list(told.tres)}, "state": "COMPLETED"}],
        "time": {
            "submission": told.submit,
            "eligible": told.eligible or told.submit,
            "start": told.start or 0,
            "end": told.end or 0,
            "elapsed": told.ran,
            "suspended": told.suspended,
            "limit": number(told.limit_min),
        },
        "tres": {"allocated": tres_list(told.tres), "requested": tres_list(told.asked)},
    }


def old_accounting(told: Told) -> dict[str, Any]:
    """The run as ``sacct --json`` printed it in 22.05: plain numbers and words."""
    record = accounting(told)
    record["state"]["current"] = told.state
    record["time"]["limit"] = told.limit_min
    record["time"]["start"] = told.start
    record["array"]["task_id"], record["het"]["job_offset"] = told.task, told.offset
    record["exit_code"] = {"status": "SUCCESS", "return_code": 0}
    return record


def row(told: Told) -> dict[str, str]:
    """The run as a row of ``sacct --parsable2``."""
    return {
        "JobID": told.number,
        "JobIDRaw": str(told.job),
        "JobName": "train",
        "Cluster": told.cluster,
        "Account": told.account,
        "User": told.user,
        "Partition": told.partition,
        "QOS": told.qos,
        "State": told.state,
        "Submit": text_time(told.submit),
        "Eligible": text_time(told.eligible or told.submit),
        "Start": text_time(told.start),
        "End": text_time(told.end),
        "ElapsedRaw": str(told.ran),
        "Suspended": str(dt.timedelta(seconds=told.suspended)),
        "TimelimitRaw": "" if told.limit_min is None else str(told.limit_min),
        "AllocTRES": told.tres or "",
        "ReqTRES": told.asked or "",
        "NodeList": told.nodes if told.start else "None assigned",
        "ExitCode": "0:0",
        "Flags": "SchedMain,JobAltered" if told.altered else "SchedMain",
        "SubmitLine": told.command,
    }


def controller(told: Told) -> dict[str, Any]:
    """The run as ``squeue --json`` prints it."""
    return {
        "job_id": told.job,
        "account": told.account,
        "user_name": told.user,
        "cluster": told.cluster,
        "partition": told.partition,
        "qos": told.qos,
        "nodes": told.nodes if told.start else "",
        "array_job_id": number(told.array or 0),
        "array_task_id": number(told.task),
        "array_task_string": told.tasks or "",
        "het_job_id": number(told.leader or 0),
        "het_job_offset": number(told.offset),
        "job_state": [told.state],
        "submit_time": number(told.submit),
        "eligible_time": number(told.eligible or told.submit),
        "start_time": number(told.start or 0),
        "end_time": number(told.end or 0),
        "resize_time": number(0),
        "suspend_time": number(0),
        "time_limit": number(told.limit_min),
        "tres_alloc_str": told.tres or "",
        "tres_req_str": told.asked or "",
        "gres_detail": [],
        "restart_cnt": told.restarts,
    }


def completion(told: Told) -> dict[str, Any]:
    """The run as ``jobcomp/kafka`` sends it; one that runs is a start event."""
    document = {
        "jobid": told.job,
        "username": told.user,
        "account": told.account,
        "cluster": told.cluster,
        "partition": told.partition,
        "qos": told.qos,
        "nodes": told.nodes,
        "@submit": text_time(told.submit),
        "@eligible": text_time(told.eligible or told.submit),
        "@start": text_time(told.start),
        "@end": text_time(told.end),
        "elapsed": (told.end or 0) - (told.start or 0),
        "state": told.state,
        "exit_code": "0:0",
        "time_limit": None if told.limit_min is None else told.limit_min * 60,
        "tres_alloc": told.tres,
        "tres_req": told.asked,
        "script": "#!/bin/sh\nsrun --gpus 8 train",
    }
    if told.state == "RUNNING":
        document |= {"state": None, "@end": None}
    if told.task is not None:
        document |= {"array_job_id": told.array, "array_task_id": told.task}
    if told.offset is not None:
        document |= {"het_job_id": told.leader, "het_job_offset": told.offset}
    return document


def document(*records: Mapping[str, Any]) -> bytes:
    meta = {"slurm": {"version": {"major": "25", "micro": "1", "minor": "05"}, "release": "25.05.1"}}
    return json.dumps({"jobs": records, "meta": meta, "errors": [], "warnings": []}, indent=1).encode()


def listing(*rows: Mapping[str, str], delimiter: str = "|") -> bytes:
    lines = [delimiter.join(rows[0]), *(delimiter.join(r.values()) for r in rows)]
    return "".join(line + "\n" for line in lines).encode()


def written(name: str, *runs: Told) -> bytes:
    """The runs in the format of a source."""
    if name == "slurm-sacct-json":
        return document(*map(accounting, runs))
    if name == "slurm-sacct-text":
        return listing(*map(row, runs))
    if name == "slurmrestd":
        return document(*map(controller, runs))
    return b"".join(json.dumps(completion(told)).encode() + b"\n" for told in runs)


FORMATS = ("slurm-jobcomp", "slurm-sacct-json", "slurm-sacct-text", "slurmrestd")


def read(
    name: str, path: Path, content: bytes, options: ImportOptions | None = None
) -> list[Translated | Fault]:
    (path / "records").write_bytes(content)
    return list(source(name).read(path / "records", options or ImportOptions()))


def read_fixture(name: str, file: str, options: ImportOptions | None = None) -> list[Translated | Fault]:
    return list(source(name).read(FIXTURES / file, options or ImportOptions()))


def understood(items: Iterable[Translated | Fault]) -> list[Event]:
    """The events of records of which each was understood, as they come back from a stream."""
    found = []
    for item in items:
        assert isinstance(item, Translated), item
        for event, value in item.events:
            assert decode(value) == event
            found.append(event)
    return found


def histories(events: Iterable[Event]) -> dict[str, History]:
    facts: defaultdict[str, list[Known]] = defaultdict(list)
    for event in events:
        facts[event.data.workload].append(Known(event.data, event.at_s, event.source, event.digest))
    return {workload: derive(known) for workload, known in facts.items()}


def gpu_seconds(events: Iterable[Event]) -> dict[str, int]:
    """What is charged for each workload; open runs are not, as long as no clock ticks."""
    sums: Counter[str] = Counter()
    for workload, history in histories(events).items():
        for key, gpu_ms in desired(history, Calendar()).items():
            if (key.commodity, key.code) == (PHYSICAL, CHARGE):
                sums[workload] += gpu_ms
    assert all(gpu_ms % 1000 == 0 for gpu_ms in sums.values())
    return {workload: gpu_ms // 1000 for workload, gpu_ms in sums.items()}


def codes(items: Iterable[Translated | Fault]) -> list[str]:
    """What was odd, and what was wrong, in order."""
    return [
        code
        for item in items
        for code in ([item.code] if isinstance(item, Fault) else [a.code for a in item.anomalies])
    ]


def expected() -> dict[str, int]:
    """The jobs of the captures and the GPU-seconds they held, worked out from the controller's log."""
    jobs = json.loads(gzip.decompress((FIXTURES / "captures/expected.json.gz").read_bytes()))["jobs"]
    # Job 24 was held and cancelled; accounting never showed it.
    return {job: told["sacct_gpu_seconds_held"] for job, told in jobs.items() if job != "24"}


def by_job(seconds: Mapping[str, int]) -> dict[str, int]:
    """GPU-seconds by the number of the job."""
    sums: Counter[str] = Counter()
    for workload, n in seconds.items():
        sums[workload.rpartition("-")[0]] += n
    return dict(sums)


def of(events: Sequence[Event], name: str) -> list[Event]:
    return [event for event in events if event.name == f"workload.{name}"]
