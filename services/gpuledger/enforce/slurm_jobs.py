"""Slurm's jobs and nodes: the order of those that wait, the runs that leave, hosts that take no new work. Pure."""

from collections.abc import Iterable, Iterator

from gpuledger.enforce.config import Order
from gpuledger.enforce.facts import Facts
from gpuledger.enforce.names import Named
from gpuledger.enforce.plan import Command, Draft, Target
from gpuledger.enforce.slurm_seen import Job, Seen

MARK = "gpuledger:"
"""Begins the reason of every node that was drained here; only these are resumed."""

TOP = 4_000_000_000
"""No priority is set above it: Slurm's end just below 2^32."""

LOOK_AHEAD = 100
"""So many jobs ahead of one are looked at for one that can stay where it is."""

STEP = 1000
"""Between two priorities, so that a job can be put between two others without touching the rest."""

PENDING, RUNNING = "PENDING", "RUNNING"
DRAIN, IN_USE = "drain", "in use"


def ordered(facts: Facts, seen: Seen, named: Named, config: Order) -> Draft:
    """Return priorities that put waiting jobs into the order of the cycle, with as few changes as that takes.

    Jobs that were put into an order once and are no longer at the head of it get back the priority that Slurm computes.
    """
    waiting = {job.array: job for job in _ours(seen.jobs, named) if job.state == PENDING and job.priority > 0}
    if facts.stale:
        return Draft(notes=(facts.stale,))
    arrays = [job_of(workload).partition("_")[0].partition("+")[0] for workload in facts.order()]
    head = [waiting[array] for array in dict.fromkeys(arrays) if array in waiting][: config.jobs]
    wanted = priorities([job.priority for job in head], config.base)
    targets = [
        Target(
            object=f"job {job.array}",
            field="priority",
            now=str(job.priority),
            wanted=str(priority),
            why=f"it is number {place} of those that wait",
            action=Command(("scontrol", "update", f"JobId={job.array}", f"Priority={priority}")),
            kept=False,
        )
        for place, (job, priority) in enumerate(zip(head, wanted, strict=True), start=1)
    ]
    placed = {job.array for job in head}
    return Draft((*targets, *_released(waiting.values(), placed, config.base)))


def priorities(now: list[int], base: int) -> list[int]:
    """Return strictly falling priorities above a base, keeping from the end what is in order already."""
    kept: list[int] = []
    floor = base
    for place in range(len(now) - 1, -1, -1):
        floor = now[place] if floor < now[place] <= TOP else floor + _step(now[:place], floor)
        kept.append(floor)
    if floor > TOP:
        return [base + STEP * place for place in range(len(now), 0, -1)]
    return kept[::-1]


def _step(ahead: list[int], floor: int) -> int:
    """Return how far above the floor the next job stands: below the first ahead of it that can stay where it is."""
    for distance, priority in enumerate(ahead[: -LOOK_AHEAD - 1 : -1], start=1):
        if floor + distance < priority <= TOP:
            return min(STEP, (priority - floor) // (distance + 1))
    return STEP


def _released(waiting: Iterable[Job], placed: set[str], base: int) -> Iterator[Target]:
    for job in waiting:
        if job.priority > base and job.array not in placed:
            yield Target(
                object=f"job {job.array}",
                field="priority",
                now=str(job.priority),
                wanted="what Slurm computes",
                why="it is not at the head of the queue any more",
                action=Command(("scontrol", "release", job.array)),
                kept=False,
            )


def departures(facts: Facts, seen: Seen, named: Named) -> Draft:
    """Return a requeue for every run that was told to leave and may: past its minimum runtime at this moment."""
    running = {(job.name, job.submitted_s): job for job in _ours(seen.jobs, named) if job.state == RUNNING}
    targets: list[Target] = []
    notes: list[str] = []
    for leaving in facts.leaving():
        name = job_of(leaving.id.workload)
        job = running.get((name, int(leaving.id.run) if leaving.id.run.isdecimal() else None))
        if leaving.spared:
            notes.append(f"job {name} stays: {leaving.spared}")
        elif job is None:
            notes.append(f"job {name}: no such run of a managed account runs any more")
        else:
            targets.append(
                Target(
                    object=f"job {name}",
                    field="run",
                    now="running",
                    wanted="requeued",
                    why=f"by {facts.cycle}: {leaving.reason}",
                    action=Command(("scontrol", "requeue", name)),
                    destructive=True,
                    kept=False,
                )
            )
    return Draft(tuple(targets), tuple(notes))


def host_states(facts: Facts, seen: Seen) -> Iterator[Target]:
    """Yield a drain for each host that is to be emptied, a resume for those that were drained here and are well."""
    for node in seen.nodes:
        now = DRAIN if node.state.lower().startswith("drain") else IN_USE
        is_draining = facts.draining.get(node.name)
        if is_draining is None or (not is_draining and not (now == DRAIN and node.reason.startswith(MARK))):
            continue
        wanted = DRAIN if is_draining else IN_USE
        how = ("State=DRAIN", f"Reason={MARK} to be repaired") if is_draining else ("State=RESUME",)
        yield Target(
            object=f"node {node.name}",
            field="state",
            now=now,
            wanted=wanted,
            why="it is to be repaired" if is_draining else "it is well again, and was drained here",
            action=Command(("scontrol", "update", f"NodeName={node.name}", *how)),
            kept=False,
        )


def job_of(workload: str) -> str:
    """Return Slurm's number of a workload: it is named after the number and the submit second of its first run."""
    return workload.rpartition("-")[0]


def _ours(jobs: Iterable[Job], named: Named) -> Iterator[Job]:
    return (job for job in jobs if job.account in named.paths)
