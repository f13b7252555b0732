"""The Alibaba PAI trace of 2020: jobs, their tasks, and the instances of each task.

The tables have no header; their columns are those that the authors publish beside them. An instance holds what
its task planned, in percent of one GPU, from its start to its end. Times are seconds with a constant taken off,
put at 1970-01-01T00:00:00Z. The trace names no team: each user has an account.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gpuledger.events.envelope import make
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.host import Registered
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns, each, floored_seconds, names
from gpuledger.sources.files import file_size
from gpuledger.sources.jobs import RUN, Job, Teams, UnderstoodJob
from gpuledger.sources.pai_tables import (
    INSTANCES,
    MACHINES,
    Plan,
    Tables,
    files,
    open_bare,
    read_tables,
    time_of,
)
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.spans import NEVER_STARTED, TRACE_END
from gpuledger.sources.table import JobTable, Record, Table, Translator, retry_row, translate_table
from gpuledger.sources.values import (
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    gpu_count,
    gpus_of_percent,
    name,
    shown,
    unknown_state,
)

_STATES = frozenset(("Running", "Terminated", "Failed", "Waiting", "Interrupted"))
_REASONS = {state: state.lower() for state in _STATES}


class Pai:
    """Source ``pai``: the folder of the trace, or its instance table with the other tables beside it."""

    name = "pai"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every machine and instance; see ``Source.read``. Jobs and tasks are held in memory."""
        instances = _Instances(options)
        found = files(path)
        instances.tables = read_tables(found)
        parts: list[tuple[Path, Translator]] = [(found[INSTANCES.name], instances)]
        if MACHINES.name in found:
            parts.insert(0, (found[MACHINES.name], _Machines(options)))
        opened = [(open_bare(file, translator.required), translator) for file, translator in parts]
        return _chain(opened)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        header = context.get("header")
        is_machine = isinstance(header, list) and tuple(header) == MACHINES.columns
        return retry_row(_Machines if is_machine else _Instances, raw, context)

    def size(self, path: Path) -> int:
        """Return the size on disk of the tables whose rows are booked."""
        found = files(path)
        return sum(file_size(file) for name, file in found.items() if name in (INSTANCES.name, MACHINES.name))


def _chain(parts: list[tuple[Table, Translator]]) -> Iterator[Translated | Fault]:
    offset = 0
    for table, translator in parts:
        yield from translate_table(table, translator, offset)
        offset += file_size(table.path)


class _Pai(Translator):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        LocalTimes(options.timezone)  # the times are seconds; a zone that does not exist is still refused
        self._cluster = cluster_name(options.cluster or Pai.name)
        self._source = f"trace/pai/{self._cluster}"
        self._teams = Teams(context)


class _Machines(_Pai):
    required = MACHINES.columns

    def translate(self, record: Record) -> Facts:
        values = record.values
        host = name("machine", values["machine"], limit_bytes=PART_LIMIT_BYTES)
        gpus = gpu_count("cap_gpu", values["cap_gpu"].removesuffix(".0"))
        if gpus == 0:
            return (), ()  # a host without GPUs is no part of the inventory
        model = name("gpu_type", values["gpu_type"])
        node = Registered(cluster=self._cluster, host=host, gpus=gpus, gpu_model=model)
        return (make(id=f"host/{host}/registered", source=self._source, at_s=0, data=node),), ()


class _Instances(_Pai, JobTable):
    required = INSTANCES.columns

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self.tables = Tables.remembered(context or {})

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        job, task = values["job_name"], values["task_name"]
        user = self.tables.jobs.get(job, ("", 0))[0]
        return self._teams.remember(self._cluster, user) | self.tables.remember(job, task)

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        job_name = name("job_name", values["job_name"], limit_bytes=PART_LIMIT_BYTES)
        task = name("task_name", values["task_name"], limit_bytes=PART_LIMIT_BYTES)
        instance = name("inst_name", values["inst_name"], limit_bytes=PART_LIMIT_BYTES)
        user, submitted_s = self.tables.job(job_name)
        plan = self.tables.plan(job_name, task)
        state = name("status", values["status"])
        started_s = time_of("start_time", values["start_time"])
        ended_s, is_estimate = self._end(values, started_s, submitted_s)
        account, oddities = self._teams.account("user", self._cluster, user)
        milli, odd = _gpus(plan)
        job = Job(
            source=self._source,
            cluster=self._cluster,
            workload=f"{job_name}:{task}:{instance}",
            run=RUN if started_s is None else f"{values['worker_name'] or '-'}:{started_s}",
            account=account,
            user=user,
            gpus_milli=milli,
            submitted_s=submitted_s,
            started_s=started_s,
            ended_s=ended_s,
            reason=NEVER_STARTED if started_s is None else TRACE_END if is_estimate else state.lower(),
            estimated=is_estimate,
            gpu_model=plan.gpu_type or None,
            hosts=_hosts(values["machine"]),
            labels={"task": task},
        )
        return job, [*oddities, *odd, *_oddities(state, started_s, submitted_s)]

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        accounts, users, plans = self._teams.known(self._cluster), self.tables.jobs, self.tables.plans
        labels = {task: {"task": task} for task in set(rows["task_name"])}
        fields = zip(
            names(rows["job_name"], PART_LIMIT_BYTES),
            names(rows["task_name"], PART_LIMIT_BYTES),
            names(rows["inst_name"], PART_LIMIT_BYTES),
            map(_REASONS.get, rows["status"]),
            *(floored_seconds([at or "0" for at in rows[column]]) for column in ("start_time", "end_time")),
            *(rows[column] for column in ("start_time", "end_time", "worker_name")),
            each(rows["machine"], _hosts),
            strict=True,
        )
        for job_name, task, instance, reason, start_s, end_s, started, ended, worker, hosts in fields:
            if (
                job_name is None
                or task is None
                or instance is None
                or reason is None
                or start_s is None
                or end_s is None
                or hosts is None
                or (of_job := users.get(job_name)) is None
                or (plan := plans.get((job_name, task))) is None
                or (account := accounts.get(of_job[0])) is None  # a row before may have been the user's first
            ):
                yield None
                continue
            submitted_s = of_job[1]
            since_s = start_s if started else submitted_s
            ended_s = end_s if ended else max(self.tables.end_s, since_s)
            gpus = _gpus_or_none(plan)
            if gpus is None or not submitted_s <= since_s <= ended_s < END_OF_TIME_S:
                yield None
                continue
            job = Job(
                source=self._source,
                cluster=self._cluster,
                workload=f"{job_name}:{task}:{instance}",
                run=f"{worker or '-'}:{start_s}" if started else RUN,
                account=account,
                user=of_job[0],
                gpus_milli=gpus[0],
                submitted_s=submitted_s,
                started_s=start_s if started else None,
                ended_s=ended_s,
                reason=(reason if ended else TRACE_END) if started else NEVER_STARTED,
                estimated=not ended,
                gpu_model=plan.gpu_type or None,
                hosts=hosts,
                labels=labels[task],
            )
            yield job, gpus[1]

    def _end(self, values: Mapping[str, str], started_s: int | None, submitted_s: int) -> tuple[int, bool]:
        """Return when the instance ended; one that outlived the trace is cut where jobs and tasks end."""
        ended_s = time_of("end_time", values["end_time"])
        since_s = submitted_s if started_s is None else started_s
        if ended_s is None:
            return max(self.tables.end_s, since_s), True
        if ended_s < since_s:
            raise BadRecord(
                f"end_time: {values['end_time']} is before {since_s}, when it was started or submitted",
                code="end-before-start",
                hint="correct the times in the file, or leave the row out",
            )
        return ended_s, False


@lru_cache(maxsize=1 << 12)
def _gpus_or_none(plan: Plan) -> tuple[int, list[Odd]] | None:
    try:
        return _gpus(plan)
    except BadRecord:
        return None


def _hosts(machine: str) -> list[str]:
    return [name("machine", machine)] if machine else []


def _gpus(plan: Plan) -> tuple[int, list[Odd]]:
    if not plan.gpu_percent:
        return 0, []
    milli, is_exact = gpus_of_percent("plan_gpu", plan.gpu_percent)
    message = f"plan_gpu: {shown(plan.gpu_percent)} % is no whole milli-GPU; {milli} are booked"
    return milli, [] if is_exact else [("fraction-of-milli", message)]


def _oddities(state: str, started_s: int | None, submitted_s: int) -> Iterator[Odd]:
    if state not in _STATES:
        yield unknown_state("status", state)
    if started_s is not None and started_s < submitted_s:
        yield "start-before-submit", f"start_time: {started_s} is before the job's, {submitted_s}"
