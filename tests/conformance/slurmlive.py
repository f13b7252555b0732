"""What a ledger makes of pictures of Slurm's live state, and a job to make pictures of."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.unit.sources.slurm.live import Items, read_text

from gpuledger.events import workload
from gpuledger.events.envelope import Event
from gpuledger.kernel.calendar import Calendar
from gpuledger.ledger.charges import CHARGE, PHYSICAL, desired
from gpuledger.ledger.facts import Known
from gpuledger.ledger.segments import History, derive

AT = 1795964000
"""2026-11-29T14:53:20Z"""


def histories(found: Sequence[Event]) -> dict[str, History]:
    """Return what the ledger derives, by workload; in whichever order facts arrive."""
    facts: defaultdict[str, list[Known]] = defaultdict(list)
    for event in {(event.id, event.digest): event for event in found}.values():
        if isinstance(event.data, workload.WorkloadFact):
            facts[event.data.workload].append(Known(event.data, event.at_s, event.source, event.digest))
    told = {name: derive(known) for name, known in facts.items()}
    assert told == {name: derive(known[::-1]) for name, known in facts.items()}
    return told


def charged(found: Sequence[Event]) -> dict[str, int]:
    """Return GPU-seconds by the number of the job."""
    sums: Counter[str] = Counter()
    for name, history in histories(found).items():
        for key, gpu_ms in desired(history, Calendar()).items():
            if (key.commodity, key.code) == (PHYSICAL, CHARGE):
                sums[name.partition("-")[0]] += gpu_ms
    return {job: gpu_ms // 1000 for job, gpu_ms in sums.items() if gpu_ms}


def demand(found: Sequence[Event], at_s: int) -> dict[str, int]:
    """Return the GPUs that each job asks for at an instant, running or eligible to run."""
    sums: Counter[str] = Counter()
    for name, history in histories(found).items():
        for span in (*history.segments, *history.waits):
            if span.from_s <= at_s and (span.to_s is None or span.to_s > at_s):
                sums[name.partition("_")[0].partition("-")[0]] += span.gpus_milli // 1000
    return {job: gpus for job, gpus in sums.items() if gpus}


def job(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a job of the controller that ran for an hour on eight GPUs."""
    told = {
        "job_id": 7,
        "cluster": "alpha",
        "account": "proj",
        "user_name": "ada",
        "job_state": "COMPLETED",
        "submit_time": AT,
        "start_time": AT + 10,
        "end_time": AT + 3610,
        "nodes": "n1",
        "tres_req_str": "cpu=8,node=1,gres/gpu=8",
        "tres_alloc_str": "cpu=8,mem=8G,node=1,billing=8,gres/gpu=8,gres/gpu:h100=8",
    }
    return {**told, **changes}


def squeue(tmp_path: Path, *jobs: dict[str, Any]) -> Items:
    return read_text("slurm-squeue-json", tmp_path, json.dumps({"jobs": jobs}))
