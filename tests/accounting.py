"""What Slurm 22.05 tells of jobs and nodes, in the shape of its answers (synthetic, but for that)."""

import json
from collections.abc import Iterable
from typing import Any

CLUSTER = "alpha"

NODE = """\
NodeName=node1 Arch=x86_64 CoresPerSocket=64
   CPUAlloc=0 CPUEfctv=128 CPUTot=128 CPULoad=0.50
   Gres=gpu:h100:8
   NodeAddr=127.0.0.1 NodeHostName=localhost Port=17001 Version=22.05.8
   RealMemory=1000000 AllocMem=0 FreeMem=9000 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu
   BootTime=2026-11-29T06:00:00 SlurmdStartTime=2026-11-29T06:01:00
   LastBusyTime=2026-11-29T06:02:00
   CfgTRES=cpu=128,mem=1000000M,billing=8,gres/gpu=8,gres/gpu:h100=8
   AllocTRES=

"""


def job(
    number: int,
    start_s: int,
    end_s: int = 0,
    *,
    gpus: int = 2,
    state: str = "",
    account: str = "vision",
    user: str = "ada",
    submit_s: int | None = None,
) -> dict[str, Any]:
    """Return one run; it runs still when it has no end."""
    held = [
        {"type": "gres", "name": "gpu", "id": 1001, "count": gpus},
        {"type": "gres", "name": "gpu:h100", "id": 1002, "count": gpus},
    ]
    return {
        "account": account,
        "association": {"account": account, "cluster": CLUSTER, "partition": None, "user": user},
        "cluster": CLUSTER,
        "job_id": number,
        "array": {"job_id": 0, "task_id": None, "task": None},
        "het": {"job_id": 0, "job_offset": None},
        "flags": ["CLEAR_SCHEDULING"],
        "nodes": "node1",
        "partition": "gpu",
        "qos": "normal",
        "state": {"current": state or ("COMPLETED" if end_s else "RUNNING"), "reason": "None"},
        "time": {
            "submission": start_s if submit_s is None else submit_s,
            "eligible": start_s if submit_s is None else submit_s,
            "start": start_s,
            "end": end_s,
            "elapsed": max((end_s or start_s + 60) - start_s, 0),
            "suspended": 0,
            "limit": 600,
        },
        "tres": {"allocated": held, "requested": held[:1]},
        "user": user,
    }


def document(jobs: Iterable[dict[str, Any]]) -> str:
    """Return the document that holds the records."""
    meta = {
        "plugin": {"type": "openapi/dbv0.0.38", "name": "REST DB v0.0.38"},
        "Slurm": {"release": "22.05.8"},
    }
    return json.dumps({"meta": meta, "errors": [], "jobs": list(jobs)}, indent=1)
