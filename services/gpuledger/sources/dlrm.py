"""The Alibaba trace of 2025: instances of recommendation services on CPU nodes and GPU nodes.

Times are seconds from the start of the trace, which is put at 1970-01-01T00:00:00Z. An instance without a time
of creation is older than the trace: it is counted from second 0, and nothing is said of its wait. One without a
time of deletion outlived the trace: it is counted up to the last second that the table names, as an estimate.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import eq
from pathlib import Path

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns, each, floored_seconds, names
from gpuledger.sources.jobs import NO_USER, Job, Teams, UnderstoodJob
from gpuledger.sources.protocol import ImportOptions
from gpuledger.sources.spans import NEVER_STARTED, TRACE_END
from gpuledger.sources.surveys import surveyed
from gpuledger.sources.table import JobTable, Record, TableSource, open_table
from gpuledger.sources.values import (
    NOTHING,
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    epoch_floored,
    gpu_count,
    name,
    present,
    shown,
)

_DELETED = "deleted"
_ROLES = frozenset(("CN", "HN"))
_TIMES = ("creation_time", "scheduled_time", "deletion_time")


class _Instances(JobTable):
    required = ("instance_sn", "role", "app_name", "gpu_request", *_TIMES)
    optional = (
        "cpu_request",
        "cpu_limit",
        "gpu_limit",
        "rdma_request",
        "rdma_limit",
        "memory_request",
        "memory_limit",
        "disk_request",
        "disk_limit",
        "max_instance_per_node",
    )

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        LocalTimes(options.timezone)  # the times are seconds; a zone that does not exist is still refused
        self._cluster = cluster_name(options.cluster or Dlrm.name)
        self._source = f"trace/dlrm/{self._cluster}"
        self._teams = Teams(context)
        kept = (context or {}).get("trace_end_s")
        self._trace_end_s = kept if isinstance(kept, int) else 0

    def survey(self, path: Path) -> None:
        """Find the last second that the table names."""
        for found in surveyed(open_table(path)):
            if isinstance(found, Columns | dict):
                for field in _TIMES:
                    column = found[field] if isinstance(found, Columns) else [found[field]]
                    # A time that cannot be read makes its row a dead letter when it is translated.
                    known = [at_s for at_s in _column(column) if at_s is not None and at_s < END_OF_TIME_S]
                    self._trace_end_s = max(self._trace_end_s, *known, 0)

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        return self._teams.remember(self._cluster, values["app_name"]) | {"trace_end_s": self._trace_end_s}

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        accounts, labels = self._teams.known(self._cluster), dict[tuple[str, str], dict[str, str]]()
        limits = rows["gpu_limit"] if "gpu_limit" in rows else rows["gpu_request"]
        fields = zip(
            names(rows["instance_sn"], PART_LIMIT_BYTES),
            rows["role"],
            rows["app_name"],
            each(rows["gpu_request"], partial(gpu_count, "gpu_request")),
            map(eq, rows["gpu_request"], limits),
            *(_column(rows[field]) for field in _TIMES),
            zip(*([value not in NOTHING for value in rows[field]] for field in _TIMES), strict=True),
            strict=True,
        )
        for instance, role, app, gpus, is_limited, created_s, scheduled_s, deleted_s, told in fields:
            account = accounts.get(app)  # a row before may have been its first
            if (
                account is None
                or instance is None
                or gpus is None
                or role not in _ROLES
                or not is_limited
                or created_s is None
                or scheduled_s is None
                or deleted_s is None
            ):
                yield None
                continue
            created, scheduled, deleted = told
            started_s = scheduled_s if scheduled or not created else None
            ended_s = deleted_s if deleted else self._trace_end_s
            since_s = created_s if started_s is None else started_s
            if not (created_s <= since_s <= ended_s < END_OF_TIME_S):
                yield None
                continue
            job = Job(
                source=self._source,
                cluster=self._cluster,
                workload=instance,
                account=account,
                user=NO_USER,
                gpus_milli=gpus * GPU_MILLI,
                submitted_s=created_s if created else None,
                started_s=started_s,
                ended_s=ended_s,
                reason=NEVER_STARTED if started_s is None else _DELETED if deleted else TRACE_END,
                estimated=not deleted,
                labels=labels.get((app, role)) or labels.setdefault((app, role), {"app": app, "role": role}),
            )
            yield job, ()

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        instance = name("instance_sn", values["instance_sn"], limit_bytes=PART_LIMIT_BYTES)
        role = name("role", values["role"])
        gpus = gpu_count("gpu_request", values["gpu_request"])
        created_s, scheduled_s, deleted_s = (_time(field, values[field]) for field in _TIMES)
        is_older = created_s is None
        started_s = 0 if is_older and scheduled_s is None else scheduled_s
        ended_s = self._trace_end_s if deleted_s is None else deleted_s
        _check_order(created_s, started_s, ended_s)
        account, oddities = self._teams.account("app_name", self._cluster, values["app_name"])
        reason = NEVER_STARTED if started_s is None else TRACE_END if deleted_s is None else _DELETED
        job = Job(
            source=self._source,
            cluster=self._cluster,
            workload=instance,
            account=account,
            user=NO_USER,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=created_s,
            started_s=started_s,
            ended_s=ended_s,
            reason=reason,
            estimated=deleted_s is None,
            labels={"app": values["app_name"], "role": role},
        )
        return job, [*oddities, *_oddities(role, values, created_s, started_s)]


def _column(column: Sequence[str]) -> Sequence[int | None]:
    """Return times by column: 0 where none is told, None where ``_time`` must be asked."""
    return floored_seconds(["0" if value in NOTHING else value for value in column])


def _time(field: str, value: str) -> int | None:
    return epoch_floored(field, value) if present(value) else None


def _check_order(created_s: int | None, started_s: int | None, ended_s: int) -> None:
    since_s = started_s if started_s is not None else created_s
    if since_s is not None and ended_s < since_s:
        raise BadRecord(
            f"deletion_time: {ended_s} is before {since_s}, when it was scheduled or created",
            code="end-before-start",
            hint="correct the times in the file, or leave the row out",
        )


def _oddities(
    role: str, values: Mapping[str, str], created_s: int | None, started_s: int | None
) -> list[Odd]:
    oddities = []
    if role not in _ROLES:
        oddities.append(("unknown-state", f"role: {shown(role)} is not known; its GPUs are booked"))
    if values.get("gpu_limit", values["gpu_request"]) != values["gpu_request"]:
        message = f"gpu_limit: {shown(values['gpu_limit'])} is not gpu_request, which is booked"
        oddities.append(("gpu-count-differs", message))
    if created_s is not None and started_s is not None and started_s < created_s:
        oddities.append(
            ("start-before-submit", f"scheduled_time: {started_s} is before creation {created_s}")
        )
    return oddities


class Dlrm(TableSource):
    """Source ``dlrm``: ``disaggregated_DLRM_trace.csv``."""

    name = "dlrm"
    kinds = (_Instances,)
