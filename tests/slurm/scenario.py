"""Everything that befalls a job, on a real cluster at once: about forty seconds, most of them waiting for Slurm.

What each job must have held is written by hand: GPUs of each of its runs, in order. Only the seconds between a
start and an end are Slurm's.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tests.slurm.driving import Row, Slurm


class Case(NamedTuple):
    """A job.

    Args:
        runs: GPUs that each of its runs holds, in the order of their starts, with the state it ends in.
        options: Options of ``sbatch``.
        script: What it runs.
        at_least_s: What its runs last together at the least, by what its script and the scenario do.
        user: Who submits it.
        account: To which account, the user's own unless given.
    """

    runs: Sequence[tuple[int, str]]
    options: Sequence[str]
    script: str
    at_least_s: int
    user: str = "alice"
    account: str | None = None


class Played(NamedTuple):
    """A job that was run to its end.

    Args:
        case: What was asked.
        job: Its id.
        rows: Its runs as Slurm has them.
        gpu_seconds: What it held.
    """

    case: Case
    job: str
    rows: Sequence[Row]
    gpu_seconds: int


_SMALL = ("-N1", "-c2", "--mem=1G")
_REST = "sleep 300"
_FIRST_RESTS = f'[ -z "$SLURM_RESTART_COUNT" ] && {_REST}'
_UNTIL_MENDED = "until [ -e mended ]; do sleep 0.2; done"
"""Waits for the end of what the scenario does to a job, however slow the machine."""

CASES: Mapping[str, Case] = {
    "normal": Case([(2, "COMPLETED")], [*_SMALL, "-w", "node1", "--gpus-per-node=h100:2"], "sleep 4", 4),
    "cpuonly": Case([(0, "COMPLETED")], [*_SMALL], "sleep 1", 1),
    "failed": Case([(1, "FAILED")], [*_SMALL, "-w", "node4", "--gres=gpu:1"], "sleep 2; exit 3", 2),
    "array": Case(
        [(1, "COMPLETED")] * 4,
        [*_SMALL, "-w", "node2", "--array=0-3%2", "--gres=gpu:1"],
        "sleep 3",
        12,
        "bob",
    ),
    "multinode": Case(
        [(2, "COMPLETED")],
        ["-N2", "-n2", "--mem=1G", "-w", "node1,node2", "--gpus-per-node=1"],
        "sleep 6",
        6,
        "bob",
    ),
    "requeue": Case(
        [(3, "REQUEUED"), (3, "COMPLETED")],
        [*_SMALL, "-w", "node1", "--gres=gpu:h100:3"],
        f"{_FIRST_RESTS}; sleep 3",
        3 + 3,
        account="proj-a2",
    ),
    # Suspended for five seconds, in which its GPUs stay its own.
    "suspend": Case(
        [(4, "COMPLETED")], [*_SMALL, "-w", "node2", "--gres=gpu:4"], _UNTIL_MENDED, 3 + 5, "bob"
    ),
    "resize": Case(
        [(2, "RESIZING"), (1, "COMPLETED")],
        ["-N2", "-n2", "--mem=1G", "-w", "node1,node2", "--gpus-per-node=h100:1"],
        _UNTIL_MENDED,
        3 + 5,
    ),
    "runcancel": Case([(1, "CANCELLED")], [*_SMALL, "-w", "node3", "--gres=gpu:1"], _REST, 3),
    "pendcancel": Case([], ["-N4", "--gpus-per-node=8", "--begin=now+1hour"], _REST, 0),
    "lowpri": Case(
        [(7, "PREEMPTED"), (7, "COMPLETED")],
        [*_SMALL, "-q", "low", "-w", "node4", "--gres=gpu:7"],
        f"{_FIRST_RESTS}; sleep 3",
        3 + 3,
        "bob",
    ),
    "highpri": Case([(7, "COMPLETED")], [*_SMALL, "-q", "high", "-w", "node4", "--gres=gpu:7"], "sleep 4", 4),
    "nodefail": Case(
        [(2, "NODE_FAIL"), (2, "COMPLETED")],
        [*_SMALL, "-w", "node3", "--gres=gpu:2", "--requeue"],
        f"{_FIRST_RESTS}; sleep 3",
        3 + 3,
    ),
    "nodelost": Case([(1, "NODE_FAIL")], [*_SMALL, "-w", "node3", "--gres=gpu:1", "--no-requeue"], _REST, 3),
}

_LATER = frozenset({"highpri"})
_MEET = ("lowpri", "requeue", "suspend", "resize", "runcancel", "nodefail", "nodelost")


def play(slurm: Slurm, meanwhile: Callable[[], None] = lambda: None) -> Mapping[str, Played]:
    """Run every case to its end.

    Args:
        slurm: The cluster.
        meanwhile: What else is to happen while jobs run, wait, are suspended and have lost their host.
    """
    jobs = {name: _submit(slurm, name) for name in CASES if name not in _LATER}
    for name in _MEET:
        slurm.wait(jobs[name], "RUNNING")
    time.sleep(3)  # what comes now must not come in the second of the start
    slurm.cancel(jobs["pendcancel"])
    slurm.cancel(jobs["runcancel"])
    slurm.wait(jobs["runcancel"])
    slurm.cluster.kill_node("node3")  # noticed later, while the others go on
    slurm.control("suspend", jobs["suspend"])
    slurm.control("requeue", jobs["requeue"])
    slurm.control("update", f"jobid={jobs['resize']}", "numnodes=1")
    jobs["highpri"] = _submit(slurm, "highpri")
    suspended = time.monotonic()
    meanwhile()
    time.sleep(max(5 - (time.monotonic() - suspended), 0))
    slurm.control("resume", jobs["suspend"])
    (slurm.cluster.work / "mended").touch()
    slurm.fail_node("node3")
    slurm.mend_node("node3")
    slurm.settle()
    rows = slurm.rows()
    return {name: _played(name, jobs[name], rows) for name in CASES}


def _submit(slurm: Slurm, name: str) -> str:
    case = CASES[name]
    return slurm.submit(name, *case.options, script=case.script, user=case.user, account=case.account)


def _played(name: str, job: str, rows: Sequence[Row]) -> Played:
    case = CASES[name]
    own = [row for row in rows if row.job.partition("_")[0] == job and row.start_s]
    assert [row.state for row in own] == [state for _, state in case.runs], (name, own)
    seconds = [row.end_s - row.start_s for row in own]
    if name == "resize":
        # Slurm lists the shrunk part from the start of the job; it begins where the first part ended.
        seconds[1] = own[1].end_s - own[0].end_s
    assert sum(seconds) >= case.at_least_s, (name, own)
    held = sum(gpus * length for (gpus, _), length in zip(case.runs, seconds, strict=True))
    return Played(case, job, own, held)
