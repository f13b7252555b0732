"""The Alibaba GPU trace of 2023 (openb): pods with fractions of GPUs, and the nodes they could run on.

Times are seconds from the start of the trace, which is put at 1970-01-01T00:00:00Z. The trace has no users
(``-`` here) and no teams: the QoS class stands in for the team. A pod that was never scheduled costs nothing,
although the trace gives it an end.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from gpuledger.events.envelope import make
from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.events.host import Registered
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.columns import Columns, each, names, whole_numbers
from gpuledger.sources.files import file_size, path_text
from gpuledger.sources.jobs import NO_USER, Job, Teams, UnderstoodJob
from gpuledger.sources.pieces import Facts
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.table import (
    JobTable,
    Record,
    Table,
    Translator,
    check_header,
    open_table,
    retry_row,
    translate_table,
)
from gpuledger.sources.values import (
    LocalTimes,
    Odd,
    cluster_name,
    epoch_second,
    gpu_count,
    gpu_fraction,
    name,
    shown,
)

NEVER_SCHEDULED = "never-scheduled"
_PHASES = frozenset(("Pending", "Running", "Succeeded", "Failed"))
_USUAL = {phase: phase for phase in _PHASES}
_SUFFIXES = (".csv.gz", ".csv")
_NODE_FILES = ("openb_node_list_gpu_node", "openb_node_list_all_node")
_POD_FILES = "openb_pod_list_"
_USUAL_PODS = "openb_pod_list_default"


class Openb:
    """Source ``openb``: a pod file, a node file, or the folder that holds both."""

    name = "openb"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every node and pod; see ``Source.read``. All headers are read before the first record."""
        parts: list[tuple[Table, Translator, int]] = []
        offset = 0
        for file in _files(path):
            table = open_table(file)
            kind = _kind(table)
            parts.append((table, kind(options), offset))
            offset += file_size(file)
        return _chain(parts)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        header = context.get("header")
        return retry_row(_Nodes if isinstance(header, list) and "sn" in header else _Pods, raw, context)

    def size(self, path: Path) -> int:
        """Return the size on disk of the files that ``read`` takes."""
        return sum(map(file_size, _files(path)))


def _chain(parts: list[tuple[Table, Translator, int]]) -> Iterator[Translated | Fault]:
    for table, translator, offset in parts:
        yield from translate_table(table, translator, offset)


class _Openb(Translator):
    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        LocalTimes(options.timezone)  # the times are seconds; a zone that does not exist is still refused
        self._cluster = cluster_name(options.cluster or Openb.name)
        self._source = f"trace/openb/{self._cluster}"
        self._teams = Teams(context)


class _Nodes(_Openb):
    required = ("sn", "cpu_milli", "memory_mib", "gpu", "model")

    def translate(self, record: Record) -> Facts:
        values = record.values
        host = name("sn", values["sn"])
        gpus = gpu_count("gpu", values["gpu"])
        if gpus == 0:
            return (), ()  # a host without GPUs is no part of the inventory
        node = Registered(
            cluster=self._cluster, host=host, gpus=gpus, gpu_model=name("model", values["model"])
        )
        return (make(id=f"host/{host}/registered", source=self._source, at_s=0, data=node),), ()


class _Pods(_Openb, JobTable):
    required = (
        "name",
        "num_gpu",
        "gpu_milli",
        "qos",
        "pod_phase",
        "creation_time",
        "deletion_time",
        "scheduled_time",
    )
    optional = ("cpu_milli", "memory_mib", "gpu_spec")

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        return self._teams.remember(self._cluster, values["qos"])

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        pod = name("name", values["name"])
        gpus, milli = gpu_count("num_gpu", values["num_gpu"]), gpu_fraction("gpu_milli", values["gpu_milli"])
        created_s, scheduled_s, deleted_s = _times(values)
        phase = name("pod_phase", values["pod_phase"])
        account, clashes = self._teams.account("qos", self._cluster, values["qos"])
        specification = values.get("gpu_spec", "")
        job = Job(
            source=self._source,
            cluster=self._cluster,
            workload=f"{pod}-{created_s}",
            account=account,
            user=NO_USER,
            gpus_milli=gpus * milli,
            submitted_s=created_s,
            started_s=scheduled_s,
            ended_s=deleted_s,
            reason=NEVER_SCHEDULED if scheduled_s is None else phase,
            eligible_s=created_s,
            gpu_model=_model(specification) or None,
        )
        return job, [*clashes, *_oddities(phase, gpus, milli, created_s, scheduled_s)]

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        accounts = self._teams.known(self._cluster)
        starts, ends = (
            [cell or "0" for cell in rows[column]] for column in ("scheduled_time", "deletion_time")
        )
        fields = zip(
            names(rows["name"]),
            each(rows["num_gpu"], partial(gpu_count, "num_gpu")),
            each(rows["gpu_milli"], partial(gpu_fraction, "gpu_milli")),
            map(_USUAL.get, rows["pod_phase"]),
            rows["qos"],
            each(rows["gpu_spec"], _model) if "gpu_spec" in rows else [""] * len(rows),
            whole_numbers(rows["creation_time"]),
            whole_numbers(starts),
            whole_numbers(ends),
            rows["scheduled_time"],
            rows["deletion_time"],
            strict=True,
        )
        for pod, gpus, milli, phase, team, model, created_s, started_s, ended_s, scheduled, deleted in fields:
            account = accounts.get(team)  # a row before may have been its first
            if (
                account is None
                or pod is None
                or gpus is None
                or milli is None
                or phase is None
                or model is None
                or created_s is None
                or started_s is None
                or ended_s is None
                or (gpus > 1 and milli != GPU_MILLI)
                or (scheduled and started_s < created_s)
                or (deleted and not (started_s if scheduled else created_s) <= ended_s < END_OF_TIME_S)
                or not (started_s if scheduled else created_s) < END_OF_TIME_S
            ):
                yield None
                continue
            job = Job(
                source=self._source,
                cluster=self._cluster,
                workload=f"{pod}-{created_s}",
                account=account,
                user=NO_USER,
                gpus_milli=gpus * milli,
                submitted_s=created_s,
                started_s=started_s if scheduled else None,
                ended_s=ended_s if deleted else None,
                reason=phase if scheduled else NEVER_SCHEDULED,
                eligible_s=created_s,
                gpu_model=model or None,
            )
            yield job, ()


def _model(specification: str) -> str:
    """Return the one model that a pod may have; nothing where it is any, or one of several."""
    return name("gpu_spec", specification) if specification and "|" not in specification else ""


def _times(values: Mapping[str, str]) -> tuple[int, int | None, int | None]:
    """Return creation, start and end; an empty start or end has not happened."""
    created_s = epoch_second("creation_time", values["creation_time"])
    scheduled, deleted = values["scheduled_time"], values["deletion_time"]
    scheduled_s = epoch_second("scheduled_time", scheduled) if scheduled else None
    deleted_s = epoch_second("deletion_time", deleted) if deleted else None
    begin_s = created_s if scheduled_s is None else scheduled_s
    if deleted_s is not None and deleted_s < begin_s:
        field = "creation_time" if scheduled_s is None else "scheduled_time"
        raise BadRecord(
            f"deletion_time: {deleted_s} is before {field} {begin_s}: the end is before the start",
            code="end-before-start",
            hint="correct the times in the file, or leave the row out",
        )
    return created_s, scheduled_s, deleted_s


def _oddities(phase: str, gpus: int, milli: int, created_s: int, scheduled_s: int | None) -> Iterator[Odd]:
    if phase not in _PHASES:
        yield "unknown-state", f"pod_phase: {shown(phase)} is not known"
    if gpus > 1 and milli % 1000:
        yield (
            "fraction-of-many",
            f"gpu_milli: {milli} of each of {gpus} GPUs; {gpus * milli} milli-GPU are booked",
        )
    if scheduled_s is not None and scheduled_s < created_s:
        yield "start-before-submit", f"scheduled_time: {scheduled_s} is before creation_time {created_s}"


def _kind(table: Table) -> type[_Openb]:
    kind: type[_Openb] = _Nodes if "sn" in table.header else _Pods
    check_header(table, kind)
    return kind


def _files(path: Path) -> list[Path]:
    """Return the files to read, nodes before pods.

    Raises:
        Refused: When a folder holds no file of the trace, or several pod lists and none is the usual one.
    """
    if not path.is_dir():
        return [path]
    pods = sorted({_stem(file) for file in path.glob(f"{_POD_FILES}*") if file.name.endswith(_SUFFIXES)})
    if len(pods) > 1:
        if _USUAL_PODS not in pods:
            raise Refused(
                f"{path_text(path)} holds {len(pods)} pod lists, variants of one another: {', '.join(pods)}",
                hint="name the pod file to import",
            )
        pods = [_USUAL_PODS]
    nodes = next((found for stem in _NODE_FILES if (found := _find(path, stem))), None)
    files = [file for file in (nodes, *(_find(path, stem) for stem in pods)) if file is not None]
    if not files:
        raise Refused(
            f"{path_text(path)} holds neither {_POD_FILES}*.csv nor {_NODE_FILES[0]}.csv (plain or .gz)",
            hint="name the folder of the trace, or its pod file",
        )
    return files


def _stem(file: Path) -> str:
    return file.name.partition(".")[0]


def _find(folder: Path, stem: str) -> Path | None:
    return next((file for suffix in _SUFFIXES if (file := folder / (stem + suffix)).is_file()), None)
