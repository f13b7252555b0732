"""What the readers of Slurm's records share: cluster and account, the ledger's knowledge of runs, arrays that wait."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from pathlib import Path

from msgspec.structs import replace

from gpuledger.kernel.accounts import escape_part, join
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.documents import Document
from gpuledger.sources.files import path_text
from gpuledger.sources.jobs import Teams
from gpuledger.sources.lines import Broken, Line
from gpuledger.sources.pieces import Facts, Interpreter, anomalies, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.slurm.job import SCHEDULER, SlurmJob, facts_of
from gpuledger.sources.slurm.shapes import decode_owner
from gpuledger.sources.slurm.times import read_time
from gpuledger.sources.slurm.tres import Tres
from gpuledger.sources.slurm.workloads import Workloads
from gpuledger.sources.values import (
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    name,
    shown,
)

UNMAPPED = "unmapped"
"""The root of what no account is named for."""

BATCH = 500
"""So many records are read ahead, to ask the ledger for all their jobs at once."""

REPEATED = 1 << 12
"""So many combinations of what jobs share (who, where, what state and size) are remembered: few of them differ."""

EMPTY = frozenset(("", "(null)", "None", "N/A", "Unknown"))
"""What stands for a value that there is not."""

_ASKS = re.compile(
    r"--gpus(?:-per-\w+)?[= ](?!(?:\w+:)?0\b)\S+|(?<!\S)-G ?(?!(?:\w+:)?0\b)\S+|--gres[= ]\S*\bgpu\b(?!\S*:0\b)\S*"
)


_Placed = tuple[SlurmJob, str]
"""A run and its workload."""


class JobReader(Interpreter):
    """Understands the records of one format: a subclass says how a record is a ``SlurmJob``.

    Args:
        options: What the person who imports says, and what the ledger knows.
        context: What a fault of an earlier pass remembered, on a retry.
    """

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        self.times = LocalTimes(options.timezone)
        self.tres = Tres(options.fractions)
        self._cluster = None if options.cluster is None else cluster_name(options.cluster)
        self._teams = Teams(context)
        self._workloads = Workloads(options.known)
        own = (context or {}).get("own_cluster")
        self._own_cluster = own if isinstance(own, str) else None
        self._clusters: dict[str, str] = {}
        self._ahead: dict[bytes, list[_Placed] | BadRecord] = {}

    @abstractmethod
    def parse(self, raw: bytes) -> Sequence[SlurmJob]:
        """Return the runs of a record: one as a rule, none of a step, one a task of an array that waits.

        Raises:
            BadRecord: When it cannot be understood.
        """

    def translate(self, raw: bytes) -> Facts:
        """Return the facts of a record."""
        placed = self._ahead.get(raw)
        if isinstance(placed, BadRecord):
            raise placed
        if placed is None:
            placed = [(job, self._workloads.workload_of(job.identity)) for job in self.parse(raw)]
        if len(placed) == 1:
            return self._facts(*placed[0])
        found = [self._facts(job, workload) for job, workload in placed]
        return tuple(fact for facts, _ in found for fact in facts), [odd for _, odds in found for odd in odds]

    def owner(self, raw: bytes) -> tuple[str | None, str | None]:
        """Return the cluster and the account that a record names, however broken the rest of it is.

        Raises:
            BadRecord: When it is too broken for that, or of a form that is not JSON.
        """
        owner = decode_owner(raw)
        return owner.cluster or owner.association.cluster, owner.account or owner.association.account

    def remember(self, raw: bytes) -> dict[str, object]:
        """Return what a retry needs to give the record the same account."""
        kept: dict[str, object] = {} if self._own_cluster is None else {"own_cluster": self._own_cluster}
        with suppress(BadRecord):
            cluster, account = self.owner(raw)
            kept |= self._teams.remember(self.cluster_of(cluster), account or "")
        return kept

    def look_ahead(self, pieces: Iterable[Line | Broken]) -> Iterator[Line | Broken]:
        """Yield the pieces; read them in batches before, and find the workloads of a batch in the order of its runs.

        The ledger is asked for all jobs of a batch at once. In order, because a listing may tell the runs of a job in
        any: each is found to go on from the one before it.
        """
        rest = iter(pieces)
        for batch in iter(lambda: list(islice(rest, BATCH)), []):
            parsed = {p.raw: self._parsed(p.raw) for p in batch if isinstance(p, Line) and p.raw.strip()}
            jobs = [job for found in parsed.values() if not isinstance(found, BadRecord) for job in found]
            wanted: dict[str, set[str]] = {}
            for job in jobs:
                wanted.setdefault(job.cluster, set()).add(job.job)
            self._workloads.look_up(wanted)
            jobs.sort(key=attrgetter("run_s"))
            workloads = {id(job): self._workloads.workload_of(job.identity) for job in jobs}
            self._ahead = {
                raw: found if isinstance(found, BadRecord) else [(job, workloads[id(job)]) for job in found]
                for raw, found in parsed.items()
            }
            yield from batch

    def time(self, field: str, value: str | None) -> tuple[int | None, Odd | None]:
        """Return seconds since the epoch, None when there is no time, and what is odd about the time.

        Raises:
            BadRecord: When it is no time, or outside the years 1970 to 2100.
        """
        if value is None:
            return None, None
        known_s = self.times.known(value)
        if known_s is not None:
            return known_s, None
        return (None, None) if value in EMPTY else read_time(self.times, field, value)

    def moment(self, field: str, value: str | None) -> int | None:
        """Return what ``time`` does, where what is odd about it is told elsewhere, or nowhere."""
        if value is None:
            return None
        known_s = self.times.known(value)
        return self.time(field, value)[0] if known_s is None else known_s

    def cluster_of(self, own: str | None) -> str:
        """Return the cluster of a record that names one itself, or does not.

        Raises:
            BadRecord: When ``--cluster`` names one cluster, and the file tells of several.
        """
        if own is None or own in EMPTY:
            return self._cluster or SCHEDULER
        found = self._clusters.get(own)
        if found is None:
            part = escape_part(name("cluster", own, limit_bytes=PART_LIMIT_BYTES))
            if part.startswith("~") or len(part) > PART_LIMIT_BYTES:
                raise BadRecord(
                    f"cluster: {shown(own)} cannot name a cluster",
                    code="bad-name",
                    hint="name it by --cluster",
                )
            if self._cluster is not None and part != (self._own_cluster or part):
                raise BadRecord(
                    f"cluster: {shown(own)} and {shown(self._own_cluster or '')} cannot both be --cluster",
                    code="several-clusters",
                    hint="import without --cluster: each record names its own; or ask Slurm for one cluster",
                )
            self._own_cluster = self._own_cluster or part
            found = self._clusters[own] = self._cluster or part
        return found

    def _parsed(self, raw: bytes) -> Sequence[SlurmJob] | BadRecord:
        try:
            return self.parse(raw)
        except BadRecord as error:
            return error

    def _facts(self, job: SlurmJob, workload: str) -> Facts:
        clashes: list[Odd] = []
        if job.account is None or job.account in EMPTY:
            account = join(UNMAPPED, job.cluster)
        else:
            account, clashes = self._teams.account("account", job.cluster, job.account)
        facts, oddities = facts_of(job, workload, account)
        return tuple(facts), clashes + oddities

    @staticmethod
    @lru_cache(maxsize=REPEATED)
    def labels(account: str | None, partition: str | None, qos: str | None) -> dict[str, str] | None:
        """Return what mapping rules may read of a job, in Slurm's own words; jobs with the same share one object."""
        told = (("account", account), ("partition", partition), ("qos", qos))
        return {key: value for key, value in told if value and value not in EMPTY} or None


def number_of(
    job_id: int, array_id: int | None, task_id: int | None, leader_id: int | None, offset: int | None
) -> str:
    """Return the number of a job as people see it, from the numbers that JSON forms tell; unset ones are None.

    Raises:
        BadRecord: When one is negative.
    """
    if min(job_id, array_id or 0, task_id or 0, leader_id or 0, offset or 0) < 0:
        raise BadRecord(f"job_id: {job_id} or its array is negative", code="bad-job-id", hint="see sacct")
    if array_id and task_id is not None:
        return f"{array_id}_{task_id}"
    if leader_id and offset is not None:
        return f"{leader_id}+{offset}"
    return str(job_id)


def asks_for_gpus(command: str | None) -> str | None:
    """Return the words of a command line that ask for GPUs, if there are any."""
    found = _ASKS.search(command) if command else None
    return None if found is None else f"its command line asks for GPUs ({shown(found[0])})"


def with_banner(document: Document, items: Iterator[Translated | Fault]) -> Iterator[Translated | Fault]:
    """Add what stood before a document to its first record."""
    first = next(items, None)
    if first is None:
        return
    if document.oddities and isinstance(first, Translated):
        odd = anomalies(path_text(document.path), document.first_line, document.oddities)
        first = replace(first, anomalies=(*odd, *first.anomalies))
    yield first
    yield from items


def read_jobs(path: Path, pieces: Iterable[Line | Broken], reader: JobReader) -> Iterator[Translated | Fault]:
    """Yield every record as facts or as a fault."""
    return interpret(path, reader.look_ahead(pieces), reader)


def waiting_tasks(job: SlurmJob, array: str, expression: str, running: int = 0) -> list[SlurmJob]:
    """Return the tasks of an array that wait and may start: as many as its own limit lets run at once.

    The tasks beyond the limit are not demand. Each task that has started has a record of its own.

    Args:
        job: What the one record of all waiting tasks says.
        array: The number of the array.
        expression: The tasks, such as ``0-3,7,10-20:5%2``; an ellipsis stands for what Slurm cut off.
        running: How many tasks of the array run already: they count against its limit.

    Raises:
        BadRecord: When the expression cannot be read.
    """
    listed, _, most = expression.strip("[]").partition("%")
    is_limited = most.isdigit() and most.isascii() and len(most) <= _DIGITS and int(most) > 0
    limit = max(0, int(most) - running) if is_limited else TASKS_LIMIT + 1
    tasks = list(islice(_tasks(expression, listed), limit))
    told = [replace(job, job=f"{array}_{task}") for task in tasks[:TASKS_LIMIT]]
    if len(tasks) > TASKS_LIMIT or "..." in listed:
        odd = (
            "tasks-cut",
            f"array tasks: {shown(expression)} names more tasks than are told as waiting here",
        )
        told[-1:] = [replace(last, oddities=(*last.oddities, odd)) for last in told[-1:]]
    return told


TASKS_LIMIT = 10_000
"""More tasks of one array are not told as waiting at once."""

_DIGITS = 9


def _tasks(expression: str, listed: str) -> Iterator[int]:
    for part in listed.split(","):
        span, _, step = part.strip().partition(":")
        first, _, last = span.partition("-")
        if span.startswith("..."):
            return
        numbers = (first, last or first, step or "1")
        if not all(n.isdigit() and n.isascii() and len(n) <= _DIGITS for n in numbers) or step == "0":
            raise BadRecord(
                f"array tasks: {shown(expression)} is no list of tasks",
                code="bad-array",
                hint="lists look like 0-3,7,10-20:5%2",
            )
        yield from range(int(first), int(last or first) + 1, int(step or 1))
