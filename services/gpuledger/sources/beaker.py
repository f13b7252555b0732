"""Jobs of Beaker as its API gives them: JSON objects, one on each line or in an array.

A workload is a task (or an environment), a run is a job of it: a task that is retried has a job for each try. GPUs
are held from the moment a job is scheduled, whether or not its container has started, until it exited; what it
uploads afterwards needs none. Who pays is its budget.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from gpuledger.events.envelope import Event, make
from gpuledger.events.workload import Preempted
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.jobs import NO_USER, Job, Teams
from gpuledger.sources.ndjson import open_objects
from gpuledger.sources.pieces import Facts, Interpreter, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.spans import NEVER_STARTED
from gpuledger.sources.values import (
    GPU_LIMIT,
    PART_LIMIT_BYTES,
    LocalTimes,
    Odd,
    cluster_name,
    name,
    shown,
    word,
)

_STATUS = "STATUS_"
_CODE = "CANCELATION_CODE_"
_UNSPECIFIED = "UNSPECIFIED"
_NO_BUDGET = "no-budget"
_OVER = frozenset(("CANCELED", "SUCCEEDED", "FAILED"))
_GOING_ON = frozenset(
    ("SUBMITTED", "QUEUED", "READY_TO_START", "INITIALIZING", "RUNNING", "STOPPING", "UPLOADING_RESULTS")
)
_STATES = _OVER | _GOING_ON
_PREEMPTIONS = frozenset(("SYSTEM_PREEMPTION", "USER_PREEMPTION", "SIBLING_TASK_PREEMPTION"))
_CODES = _PREEMPTIONS | frozenset(
    (
        "IDLE",
        "MANUAL",
        "TIMEOUT",
        "NODE_UNAVAILABLE",
        "IMPOSSIBLE_TO_SCHEDULE",
        "SIBLING_TASK_FAILED",
        "SIBLING_TASK_RETRY",
        "HEALTHCHECK_FAILED",
    )
)
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_PATH = re.compile(r"(?<=`)\$.*(?=`)")
"""Where in a document something is wrong, as messages tell it."""

_SECONDS = re.compile(r"([0-9]{1,12})(?:\.[0-9]{1,9})?s")


class _Request(msgspec.Struct, rename="camel"):
    gpu_count: int = 0


class _Container(msgspec.Struct, rename="camel"):
    resource_request: _Request = msgspec.field(default_factory=_Request)


class _Resources(msgspec.Struct, rename="camel"):
    gpus: list[str] = []


class _Assignment(msgspec.Struct, rename="camel"):
    node_id: str = ""
    resource_assignment: _Resources | None = None


class _System(msgspec.Struct, rename="camel"):
    priority: str = ""
    preemptible: bool = False
    timeout: str = ""


class _Status(msgspec.Struct, rename="camel"):
    status: str
    created: str
    scheduled: str = ""
    exited: str = ""
    failed: str = ""
    finalized: str = ""
    canceled: str = ""
    exit_code: int | None = None
    canceled_code: str = ""


class _Job(msgspec.Struct, rename="camel"):
    id: str
    status: _Status
    task_id: str = ""
    environment_id: str = ""
    author_id: str = ""
    workspace_id: str = ""
    budget_id: str = ""
    workload_created: str = ""
    container_spec: _Container = msgspec.field(default_factory=_Container)
    system_details: _System = msgspec.field(default_factory=_System)
    assignment_details: _Assignment = msgspec.field(default_factory=_Assignment)


class _UsualRequest(_Request, rename="camel", forbid_unknown_fields=True):
    cpu_count: Any = None
    memory_bytes: Any = None
    shared_memory_bytes: Any = None


class _UsualContainer(_Container, rename="camel", forbid_unknown_fields=True):
    resource_request: _UsualRequest = msgspec.field(default_factory=_UsualRequest)
    image_id: Any = None
    docker_reference: Any = None
    command: Any = None
    arguments: Any = None
    environment_variables: Any = None
    mounts: Any = None
    save_image: Any = None
    working_directory: Any = None
    result_path: Any = None
    port_mapping_request: Any = None
    host_networking: Any = None
    identity: Any = None


class _UsualResources(_Resources, rename="camel", forbid_unknown_fields=True):
    cpu_count: Any = None
    memory_bytes: Any = None
    assigned_slots_count: Any = None


class _UsualAssignment(_Assignment, rename="camel", forbid_unknown_fields=True):
    resource_assignment: _UsualResources | None = None
    port_mapping_assignment: Any = None
    result_dataset_id: Any = None
    assigned_environment_variables: Any = None
    occupied_slots_count: Any = None


class _UsualSystem(_System, rename="camel", forbid_unknown_fields=True):
    placement_constraints: Any = None
    replica_group_details: Any = None
    propagate_failure: Any = None
    propagate_preemption: Any = None


class _UsualStatus(_Status, rename="camel", forbid_unknown_fields=True, kw_only=True):
    started: Any = None
    message: Any = None
    canceled_for: Any = None
    idle_since: Any = None
    ready: Any = None
    failed_scheduling_message: Any = None


class _UsualJob(_Job, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A job with no other keys than those that the protocol has, all spelt as its JSON spells them.

    It is read in one go: there is no key that could be one of them, spelt otherwise.
    """

    status: _UsualStatus
    container_spec: _UsualContainer = msgspec.field(default_factory=_UsualContainer)
    system_details: _UsualSystem = msgspec.field(default_factory=_UsualSystem)
    assignment_details: _UsualAssignment = msgspec.field(default_factory=_UsualAssignment)
    name: Any = None
    workload_id: Any = None
    metrics: Any = None
    workspace_reference: Any = None
    author_reference: Any = None
    retry_ancestor_id: Any = None


_decoder = msgspec.json.Decoder(_UsualJob)
_KEYS = {
    field.name: field.encode_name
    for kind in (_Request, _Container, _Resources, _Assignment, _System, _Status, _Job)
    for field in msgspec.structs.fields(kind)
}
"""The words of the protocol -> how its usual JSON spells them."""


class _Jobs(Interpreter):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options, context)
        self._cluster = cluster_name(options.cluster or Beaker.name)
        self._source = f"beaker/{self._cluster}"
        self._times = LocalTimes(options.timezone)
        self._teams = Teams(context)

    def remember(self, raw: bytes) -> dict[str, object]:
        try:
            return self._teams.remember(self._cluster, _decoded(raw).budget_id)
        except BadRecord:
            return {}

    def translate(self, raw: bytes) -> Facts:
        job, code, oddities = self.job(raw)
        facts = job.facts()
        if code in _PREEMPTIONS and job.started_s is not None and job.ended_s is not None:
            facts[-1] = _preempted(facts[-1][0])
        return tuple(facts), oddities

    def job(self, raw: bytes) -> tuple[Job, str, Sequence[Odd]]:
        """Return the job of a record with its only run, why it was cancelled, and what is odd.

        Raises:
            BadRecord: When it cannot be understood.
        """
        job = _decoded(raw)
        run = name("id", job.id, limit_bytes=PART_LIMIT_BYTES)
        workload = name("task_id", job.task_id or job.environment_id or run, limit_bytes=PART_LIMIT_BYTES)
        state, code = _word(job.status.status, _STATUS), _word(job.status.canceled_code, _CODE)
        oddities: list[Odd] = list(_unknown_words(state, code))
        created_s, doubt = self._times.read("created", job.status.created)
        oddities += [doubt] if doubt else []
        started_s = self._time("scheduled", job.status.scheduled, oddities)
        ended_s = self._end(job.status, state, oddities)
        submitted_s = self._time("workload_created", job.workload_created, oddities)
        account, clashes = self._teams.account("budget_id", self._cluster, job.budget_id or _NO_BUDGET)
        if not job.budget_id:
            oddities.append(("no-budget", f"budget_id: is missing; booked to {account}"))
        devices = _devices(job)
        gpus, odd = _gpus(job, len(devices))
        booked = Job(
            source=self._source,
            cluster=self._cluster,
            workload=workload,
            run=run,
            account=account,
            user=name("author_id", job.author_id) if job.author_id else NO_USER,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=created_s if submitted_s is None else submitted_s,
            started_s=started_s,
            ended_s=ended_s,
            reason=_reason(state, code, is_started=started_s is not None),
            exit=None if job.status.exit_code is None else str(job.status.exit_code),
            kind="interactive" if job.environment_id and not job.task_id else None,
            time_limit_s=_timeout(job.system_details.timeout),
            hosts=[name("node_id", node)] if (node := job.assignment_details.node_id) else [],
            gpu_uuids=devices or None,
            labels=_labels(job),
        )
        return booked, code, [*oddities, *odd, *clashes]

    def _time(self, field: str, value: str, oddities: list[Odd]) -> int | None:
        if not value:
            return None
        at_s, doubt = self._times.read(field, value)
        if doubt:
            oddities.append(doubt)
        return at_s

    def _end(self, status: _Status, state: str, oddities: list[Odd]) -> int | None:
        """Return when the job gave its GPUs back: it exited, or what else says that it was over.

        Raises:
            BadRecord: When it is over and nothing says since when, or that is before it was scheduled.
        """
        told = {"exited": status.exited}
        if state not in _GOING_ON:  # a job that is being stopped holds its GPUs until it exits
            told |= {"failed": status.failed, "finalized": status.finalized, "canceled": status.canceled}
        field, value = next(((f, v) for f, v in told.items() if v), ("", ""))
        if not value:
            if state in _OVER:
                raise BadRecord(
                    f"exited: the job is {state}, and nothing says since when",
                    code="missing-value",
                    hint="fetch the job again: exited, failed, finalized and canceled are all missing",
                )
            return None
        ended_s = self._time(field, value, oddities)
        begun = status.scheduled or status.created
        begun_s = self._time("scheduled", begun, [])
        if ended_s is not None and begun_s is not None and ended_s < begun_s:
            raise BadRecord(
                f"{field}: {value} is before {begun}: the end is before the start",
                code="end-before-start",
                hint="compare the clocks that wrote the two times, and correct one",
            )
        return ended_s


def _preempted(ended: Event) -> tuple[Event, bytes]:
    """Return the end of a run as what it was: the system took the GPUs back, and the task waits again."""
    said: Any = ended.data
    data = Preempted(
        cluster=said.cluster, workload=said.workload, reason=said.reason, run=said.run, exit=said.exit
    )
    return make(id=ended.id, source=ended.source, at_s=ended.at_s, data=data)


def _gpus(job: _Job, assigned: int) -> tuple[int, list[Odd]]:
    """Return how many GPUs the job holds: those it was assigned, else those it asked for."""
    asked = job.container_spec.resource_request.gpu_count
    given = job.assignment_details.resource_assignment
    count = asked if given is None else assigned
    if not 0 <= count <= GPU_LIMIT:
        raise BadRecord(
            f"gpu_count: {count} is outside 0 to {GPU_LIMIT}",
            code="out-of-bounds",
            hint="correct the number of GPUs",
        )
    if given is not None and count != asked:
        return count, [
            ("gpu-count-differs", f"gpu_count: {asked} asked for; {count} are assigned and booked")
        ]
    return count, []


def _devices(job: _Job) -> list[str]:
    given = job.assignment_details.resource_assignment
    return [] if given is None else list(dict.fromkeys([word("gpus", gpu) for gpu in given.gpus]))


def _labels(job: _Job) -> dict[str, str]:
    labels = {"workspace": job.workspace_id, "priority": _word(job.system_details.priority, "JOB_PRIORITY_")}
    labels["preemptible"] = "true" if job.system_details.preemptible else "false"
    return {key: value for key, value in labels.items() if value}


def _reason(state: str, code: str, *, is_started: bool) -> str:
    return code.lower() or (state.lower() if is_started else NEVER_STARTED)


def _unknown_words(state: str, code: str) -> Iterator[Odd]:
    if state not in _STATES:
        yield "unknown-state", f"status: {shown(state)} is not known; its times are booked"
    if code and code not in _CODES:
        yield "unknown-state", f"canceled_code: {shown(code)} is not known; its times are booked"


def _word(value: str, prefix: str) -> str:
    """Return a word of an enumeration without its prefix, and nothing for what is not specified."""
    word = value.removeprefix(prefix)
    return "" if word == _UNSPECIFIED else word


def _timeout(value: str) -> int | None:
    found = _SECONDS.fullmatch(value)
    return int(found[1]) or None if found else None


def _decoded(raw: bytes) -> _Job:
    with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
        return _decoder.decode(raw)
    try:
        return msgspec.convert(_respelt(msgspec.json.decode(raw)), _Job)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise BadRecord(
            f"is no job of Beaker: {_PATH.sub(lambda path: _snake(path[0]), str(error))}",
            code="bad-field",
            hint="a job has id and status with status and created; see docs/sources/traces.md",
        ) from error


def _respelt(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON with its keys spelt as usual: gpuCount for what the protocol calls gpu_count."""
    if isinstance(value, dict):
        return {_key(key): _respelt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_respelt(item) for item in value]
    return value


@lru_cache(maxsize=1024)
def _key(key: str) -> str:
    return _KEYS.get(_snake(key), _snake(key))


def _snake(key: str) -> str:
    return _HUMP.sub("_", key).lower()


class Beaker(PieceSource):
    """Source ``beaker``: jobs with status, budget and assignment."""

    name = "beaker"
    interpreter = _Jobs

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the file; see ``Source.read``."""
        interpreter = _Jobs(options)
        return interpret(path, open_objects(path), interpreter)
