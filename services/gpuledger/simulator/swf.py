"""Writes what was submitted in a simulation in the Standard Workload Format, version 2.2, for other simulators.

What is written is a workload, not a log: each job with how long it takes when nobody disturbs it, as if it had
started at once. So a workload that one world brought about (users ask again when their jobs are over) can be put
before any other program, or read back with ``demand: {trace: swf}``.
"""

from collections.abc import Iterable
from typing import TextIO

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import instant
from gpuledger.simulator.facts import Fact, Submitted
from gpuledger.simulator.jobs import Job
from gpuledger.simulator.scenario import Scenario
from gpuledger.simulator.waits import GROUPS

_UNKNOWN = -1
_COMPLETED = 1


def write_swf(facts: Iterable[Fact], scenario: Scenario, out: TextIO) -> int:
    """Write every submission, in order of time, and return how many there were.

    Parts of GPUs become whole ones, as the format counts processors.

    Args:
        facts: What happened, as ``simulate`` tells it.
        scenario: What was simulated.
        out: Where to; text in ASCII.
    """
    out.writelines(f"; {line}\n" for line in _header(scenario))
    users: dict[str, int] = {}
    accounts = {spec.account: number for number, spec in enumerate(scenario.accounts, start=1)}
    written = 0
    for fact in facts:
        if isinstance(fact, Submitted):
            job, written = fact.job, written + 1
            user = users.setdefault(job.user, len(users) + 1)
            account = accounts.setdefault(job.account, len(accounts) + 1)
            queue = GROUPS.index(scenario.groups.of(job)) + 1
            out.write(_line(job, written, fact.at_s - scenario.start_s, user, account, queue))
    return written


def undisturbed_s(job: Job) -> int:
    """Return how long a job occupies its GPUs when nobody disturbs it: it loads, works and idles, up to its limit."""
    needed_s = job.startup_s + job.work_s + job.idle_s
    return needed_s if job.time_limit_s is None else min(needed_s, job.time_limit_s)


def _line(job: Job, number: int, submitted_s: int, user: int, account: int, queue: int) -> str:
    gpus = -(-job.gpus_milli // GPU_MILLI)
    fields = (
        number,
        submitted_s,
        0,  # it waits for nothing here
        undisturbed_s(job),
        gpus,
        _UNKNOWN,
        _UNKNOWN,
        gpus,
        job.time_limit_s or _UNKNOWN,
        _UNKNOWN,
        _COMPLETED,
        user,
        account,
        _UNKNOWN,
        queue,
        _UNKNOWN,
        _UNKNOWN,
        _UNKNOWN,
    )
    return " ".join(map(str, fields)) + "\n"


def _header(scenario: Scenario) -> Iterable[str]:
    gpus = -(-sum(host.gpus_milli for host in scenario.hosts) // GPU_MILLI)
    yield "Version: 2.2"
    yield f"Computer: {_ascii(scenario.cluster)}"
    yield f"UnixStartTime: {scenario.start_s}"
    yield "TimeZoneString: UTC"
    yield f"StartTime: {instant(scenario.start_s).strftime('%a %b %d %H:%M:%S %Y')}"
    yield f"EndTime: {instant(scenario.end_s).strftime('%a %b %d %H:%M:%S %Y')}"
    yield f"MaxNodes: {len(scenario.hosts)}"
    yield f"MaxProcs: {gpus}"
    yield "Note: processors are GPUs"
    yield f"Note: submissions of a simulation of the scenario {_ascii(scenario.name)}"
    yield "Note: run times are undisturbed, and no job waits: this is a workload, not a log"
    for number, name in enumerate(GROUPS, start=1):
        yield f"Queue: {number} {name}"
    for number, spec in enumerate(scenario.accounts, start=1):
        yield f"Note: group {number} is {_ascii(spec.account)}"


def _ascii(text: str) -> str:
    """Return a name as the format can hold it."""
    return text.encode("ascii", "backslashreplace").decode()
