"""The tables of the PAI trace: their files and columns, and what an instance needs of its job and task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.lines import Broken, Line, open_parts
from gpuledger.sources.surveys import surveyed_rows
from gpuledger.sources.table import Table
from gpuledger.sources.values import epoch_floored, present

_SUFFIXES = (".csv", ".csv.gz")


class Kind(NamedTuple):
    """A table: the stem of its file, and its columns in the order in which they are published."""

    name: str
    columns: tuple[str, ...]


JOBS = Kind("pai_job_table", ("job_name", "inst_id", "user", "status", "start_time", "end_time"))
TASKS = Kind(
    "pai_task_table",
    (
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        "gpu_type",
    ),
)
INSTANCES = Kind(
    "pai_instance_table",
    (
        "job_name",
        "task_name",
        "inst_name",
        "worker_name",
        "inst_id",
        "status",
        "start_time",
        "end_time",
        "machine",
    ),
)
MACHINES = Kind("pai_machine_spec", ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"))


class Plan(NamedTuple):
    """What each instance of a task gets.

    Args:
        gpu_percent: GPUs in percent of one, as written; empty for none.
        gpu_type: Their model; empty where none is named.
    """

    gpu_percent: str
    gpu_type: str


@dataclass(slots=True)
class Tables:
    """Jobs and tasks, by name.

    Args:
        jobs: Job -> user and second of submission.
        plans: Job and task -> what its instances get.
        end_s: The last second that jobs or tasks name.
    """

    jobs: dict[str, tuple[str, int]] = field(default_factory=dict)
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)
    end_s: int = 0

    def job(self, job: str) -> tuple[str, int]:
        """Return user and second of submission of a job.

        Raises:
            BadRecord: When the job table has no such row, or it cannot be read.
        """
        found = self.jobs.get(job)
        if found is None:
            raise BadRecord(
                f"job_name: the job table has no readable row of {job!r}",
                code="unknown-job",
                hint=f"look for it in {JOBS.name}.csv, and import the folder again",
            )
        return found

    def plan(self, job: str, task: str) -> Plan:
        """Return what each instance of a task gets.

        Raises:
            BadRecord: When the task table has no such row, or it cannot be read.
        """
        found = self.plans.get((job, task))
        if found is None:
            raise BadRecord(
                f"task_name: the task table has no readable row of {task!r} of {job!r}",
                code="unknown-task",
                hint=f"look for it in {TASKS.name}.csv, and import the folder again",
            )
        return found

    def remember(self, job: str, task: str) -> dict[str, object]:
        """Return what a retry of an instance needs; JSON types only."""
        kept: dict[str, object] = {"job": job, "task": task, "end_s": self.end_s}
        if job in self.jobs:
            kept["of_job"] = list(self.jobs[job])
        if (job, task) in self.plans:
            kept["of_task"] = list(self.plans[job, task])
        return kept

    @classmethod
    def remembered(cls, context: Mapping[str, object]) -> "Tables":
        """Return the tables as far as a fault remembered them."""
        tables = cls()
        match context:
            case {"job": str(job), "task": str(task), "end_s": int(end_s)}:
                tables.end_s = end_s
                match context.get("of_job"):
                    case [str(user), int(submitted_s)]:
                        tables.jobs[job] = (user, submitted_s)
                match context.get("of_task"):
                    case [str(percent), str(model)]:
                        tables.plans[job, task] = Plan(percent, model)
        return tables


def files(path: Path) -> dict[str, Path]:
    """Return the files of the tables by stem: jobs, tasks and instances, and machines where there are any.

    Raises:
        Refused: When one of the three is missing, or the path is another file.
    """
    if not path.is_dir() and not path.name.startswith(INSTANCES.name):
        file_size(path)  # a path that does not exist is refused as such
        raise Refused(
            f"{path_text(path)} is not the folder of the trace, nor {INSTANCES.name}.csv",
            hint=f"name the folder with {JOBS.name}.csv, {TASKS.name}.csv and {INSTANCES.name}.csv",
        )
    folder = path if path.is_dir() else path.parent
    found = {kind.name: file for kind in (JOBS, TASKS, INSTANCES, MACHINES) if (file := _find(folder, kind))}
    if not path.is_dir():
        found[INSTANCES.name] = path
    if missing_tables := [kind.name for kind in (JOBS, TASKS, INSTANCES) if kind.name not in found]:
        raise Refused(
            f"{path_text(folder)} holds no {'.csv, no '.join(missing_tables)}.csv",
            hint="an instance is booked by what its job and task say: fetch all three tables",
        )
    return found


def open_bare(path: Path, columns: Sequence[str]) -> Table:
    """Open a table without a header; one that was put in front is passed over.

    Raises:
        Refused: When the file cannot be opened, or its first line has another number of columns.
    """
    lines = open_parts(path)
    first = next(lines)
    if isinstance(first, Broken):
        raise Refused(f"{first.message}; there is no row", hint=first.hint)
    cells = first.raw.rstrip(b"\r").split(b",") if isinstance(first, Line) else []
    if len(cells) != len(columns):
        raise Refused(
            f"{path_text(path)}:1: {len(cells)} columns, but {len(columns)} are published",
            hint=f"the columns are {', '.join(columns)}",
        )
    is_header = cells == [column.encode() for column in columns]
    return Table(path, tuple(columns), lines if is_header else chain((first,), lines))


def read_tables(found: Mapping[str, Path]) -> Tables:
    """Read jobs and tasks; rows that cannot be read are missed by the instances that need them.

    Raises:
        Refused: When a table cannot be opened.
    """
    tables = Tables()
    for values in _rows(found, JOBS):
        submitted_s = time_of("start_time", values["start_time"])
        if values["user"] and submitted_s is not None:
            tables.jobs[values["job_name"]] = (values["user"], submitted_s)
        _reach(tables, values)
    for values in _rows(found, TASKS):
        plan = Plan(present(values["plan_gpu"]), present(values["gpu_type"]))
        tables.plans[values["job_name"], values["task_name"]] = plan
        _reach(tables, values)
    return tables


def time_of(field_name: str, value: str) -> int | None:
    """Return an instant of the trace, or None where it has none.

    Raises:
        BadRecord: When it is no number, or out of bounds.
    """
    return epoch_floored(field_name, value) if present(value) else None


def _rows(found: Mapping[str, Path], kind: Kind) -> Iterator[dict[str, str]]:
    for values in surveyed_rows(open_bare(found[kind.name], kind.columns)):
        if isinstance(values, dict):
            try:
                time_of("start_time", values["start_time"])
                time_of("end_time", values["end_time"])
            except BadRecord:
                continue
            yield values


def _reach(tables: Tables, values: Mapping[str, str]) -> None:
    for column in ("start_time", "end_time"):
        tables.end_s = max(tables.end_s, time_of(column, values[column]) or 0)


def _find(folder: Path, kind: Kind) -> Path | None:
    return next((file for suffix in _SUFFIXES if (file := folder / (kind.name + suffix)).is_file()), None)
