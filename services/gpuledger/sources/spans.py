"""Rows that tell when a job was submitted, started and ended: the columns that several published traces share."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import sub
from typing import NamedTuple

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns, each, names
from gpuledger.sources.jobs import Job, Teams, UnderstoodJob
from gpuledger.sources.values import (
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    gpu_count,
    name,
    present,
    seconds_and_fraction,
    shown,
    word,
)

NEVER_STARTED = "never-started"

TRACE_END = "trace-end"
"""The reason of ends that are only where a trace was cut."""

JOB_STATES = frozenset(("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"))
"""How a job of the Helios and Acme traces can have ended."""

_TIMES = ("submit_time", "start_time", "end_time")
_REASONS = {state: state.lower() for state in JOB_STATES}


class Span(NamedTuple):
    """A job's way through the queue and the cluster.

    Args:
        submitted_s: When it was submitted.
        started_s: When it got its GPUs; None when it never did.
        ended_s: When it was over.
    """

    submitted_s: int
    started_s: int | None
    ended_s: int

    @property
    def ran_s(self) -> int:
        """How long it held its GPUs."""
        return 0 if self.started_s is None else self.ended_s - self.started_s

    @property
    def waited_s(self) -> int:
        """How long it was in the queue, if it left it for the cluster."""
        return 0 if self.started_s is None else self.started_s - self.submitted_s


def span(times: LocalTimes, values: Mapping[str, str]) -> tuple[Span, list[Odd]]:
    """Read ``submit_time``, ``start_time`` and ``end_time``; a start that is missing never was.

    Raises:
        BadRecord: When submission or end is missing, a time cannot be read, or the end is before the start.
    """
    told = values["submit_time"], values["start_time"], values["end_time"]
    oddities: list[Odd] = []
    submitted_s, started_s, ended_s = map(times.known, told)
    if submitted_s is None or started_s is None or ended_s is None:
        submitted_s, started_s, ended_s = _read(times, *told, oddities)
    if ended_s < (submitted_s if started_s is None else started_s):
        field = "submit_time" if started_s is None else "start_time"
        raise BadRecord(
            f"end_time: {values['end_time']} is before {field} {values[field]}",
            code="end-before-start",
            hint="correct the times in the file, or leave the row out",
        )
    if started_s is not None and started_s < submitted_s:
        message = f"start_time: {values['start_time']} is before submit_time {values['submit_time']}"
        oddities.append(("start-before-submit", message))
    return Span(submitted_s, started_s, ended_s), oddities


def _read(
    times: LocalTimes, submit: str, start: str, end: str, oddities: list[Odd]
) -> tuple[int, int | None, int]:
    submitted_s, doubt = times.read("submit_time", present(submit))
    oddities += [doubt] if doubt else []
    started_s = None
    if start := present(start):
        started_s, doubt = times.read("start_time", start)
        oddities += [doubt] if doubt else []
    ended_s, doubt = times.read("end_time", present(end))
    oddities += [doubt] if doubt else []
    return submitted_s, started_s, ended_s


class Row(NamedTuple):
    """A row of a job table, understood.

    Args:
        job: What is booked.
        held: When it was where.
        oddities: What is odd about its times and its state.
        clashes: What is odd about the name of its team.
    """

    job: Job
    held: Span
    oddities: list[Odd]
    clashes: list[Odd]


def job_row(
    place: tuple[str, str], teams: Teams, team: str, times: LocalTimes, values: Mapping[str, str]
) -> Row:
    """Read the columns that the job tables of Acme and Helios share.

    Args:
        place: Who says so, and the cluster, which is also the root account.
        teams: Accounts of teams.
        team: The column that stands for the team.
        times: How times are read.
        values: The row, with ``job_id``, ``gpu_num``, ``state``, ``user`` and its times.

    Raises:
        BadRecord: When a field cannot be read.
    """
    source, cluster = place
    job_id = name("job_id", values["job_id"], limit_bytes=PART_LIMIT_BYTES)
    gpus, state = gpu_count("gpu_num", values["gpu_num"]), word("state", values["state"])
    held, oddities = span(times, values)
    account, clashes = teams.account(team, cluster, values[team])
    job = Job(
        source=source,
        cluster=cluster,
        workload=f"{job_id}-{held.submitted_s}",
        account=account,
        user=word("user", values["user"]),
        gpus_milli=gpus * GPU_MILLI,
        submitted_s=held.submitted_s,
        started_s=held.started_s,
        ended_s=held.ended_s,
        reason=NEVER_STARTED if held.started_s is None else state.lower(),
        labels={team: values[team]},
    )
    return Row(job, held, oddities, clashes)


Sums = Callable[[Sequence[int], Sequence[int], Sequence[int | None]], Sequence[Iterable[str]]]
"""Writes the sums that rows should tell, by column, given how long each ran and waited, and its GPUs."""

Differences = Callable[[Sequence[str], Span, int], Sequence[Odd]]
"""Says what is odd about the sums that a row tells, given its times and its GPUs."""


class Told(NamedTuple):
    """What the rows of a table tell besides their times.

    Args:
        columns: Where.
        usual: How almost every row writes it.
        differences: What to say of the others.
    """

    columns: Sequence[str]
    usual: Sums
    differences: Differences


def job_rows(
    place: tuple[str, str], teams: Teams, team: str, times: LocalTimes, told: Told, rows: Columns
) -> Iterator[UnderstoodJob | None]:
    """Yield what ``job_row`` says of rows that are as usual: of a known team, with all times in their order.

    Args:
        place: As for ``job_row``.
        teams: As for ``job_row``.
        team: As for ``job_row``.
        times: As for ``job_row``.
        told: What the rows tell besides.
        rows: The rows.
    """
    submits, starts, ends = (times.column(rows[column]) for column in _TIMES)
    gpu_counts = each(rows["gpu_num"], partial(gpu_count, "gpu_num"))
    usual = told.usual([*map(sub, ends, starts)], [*map(sub, starts, submits)], gpu_counts)
    sums = [rows[column] for column in told.columns]
    accounts, labels = teams.known(place[1]), dict[str, dict[str, str]]()
    fields = zip(
        names(rows["job_id"], PART_LIMIT_BYTES),
        gpu_counts,
        map(_REASONS.get, rows["state"]),
        each(rows["user"], partial(word, "user")),
        rows[team],
        submits,
        starts,
        ends,
        zip(*sums, strict=True),
        zip(*usual, strict=True),
        strict=True,
    )
    for job_id, gpus, reason, user, label, submitted_s, started_s, ended_s, says, should in fields:
        account = accounts.get(label)  # a row before may have been its first
        if (
            job_id is None
            or gpus is None
            or reason is None
            or user is None
            or account is None
            or not 0 <= submitted_s <= started_s <= ended_s
        ):
            yield None
            continue
        job = Job(
            source=place[0],
            cluster=place[1],
            workload=f"{job_id}-{submitted_s}",
            account=account,
            user=user,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=submitted_s,
            started_s=started_s,
            ended_s=ended_s,
            reason=reason,
            labels=labels.get(label) or labels.setdefault(label, {team: label}),
        )
        span_of = Span(submitted_s, started_s, ended_s) if says != should else None
        yield job, () if span_of is None else told.differences(says, span_of, gpus)


def told_seconds(field: str, value: str) -> tuple[int | None, Odd | None]:
    """Return a sum that a row tells besides its times, or why it cannot be read; it is only compared, never booked."""
    if not present(value):
        return None, None
    try:
        return seconds_and_fraction(field, value)[0], None
    except BadRecord as error:
        return None, (f"{field.replace('_', '-')}-differs", f"{error.message}; it is not booked")


def compare(field: str, value: str, booked_s: int) -> Odd | None:
    """Return what is odd when a row tells another number of seconds than its times are apart."""
    if value == str(booked_s):
        return None  # as almost every row says
    told_s, odd = told_seconds(field, value)
    if told_s is None or told_s == booked_s:
        return odd
    message = f"{field}: {shown(value)} s, but the times are {booked_s} s apart, which counts"
    return f"{field.replace('_', '-')}-differs", message
