"""The Microsoft Philly trace as one row per job (flattened by the Pollux authors).

The rows have no key, no user, no start and no state. A job starts when it was submitted, its user is ``-``,
and its id is the digest of its row; identical rows are different jobs, told apart by their order.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from gpuledger.events.fields import END_OF_TIME_S
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.errors import BadRecord
from gpuledger.sources.columns import Columns, each, whole_seconds
from gpuledger.sources.files import file_size
from gpuledger.sources.jobs import NO_USER, Job, Teams, UnderstoodJob
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.table import (
    JobTable,
    Record,
    check_header,
    open_table,
    retry_row,
    translate_table,
)
from gpuledger.sources.values import (
    LocalTimes,
    Odd,
    cluster_name,
    gpu_count,
    instant_in_bounds,
    seconds_and_fraction,
    shown,
)

_ID_BYTES = 8


class Philly:
    """Source ``philly``: columns timestamp, duration, num_gpus, gpu_time, cluster."""

    name = "philly"

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every job of the file; see ``Source.read``."""
        translator = _Jobs(options)
        table = open_table(path)
        check_header(table, _Jobs)
        return translate_table(table, translator)

    def retry(self, raw: bytes, context: Mapping[str, object]) -> Translated:
        """Translate one row again; see ``Source.retry``."""
        return retry_row(_Jobs, raw, context)

    def size(self, path: Path) -> int:
        """Return the size of the file on disk."""
        return file_size(path)


class _Jobs(JobTable):
    required = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")

    def __init__(self, options: ImportOptions, context: Mapping[str, object] | None = None) -> None:
        super().__init__(options)
        self._cluster = cluster_name(options.cluster or Philly.name)
        self._source = f"trace/philly/{self._cluster}"
        self._times = LocalTimes(options.timezone)
        self._teams = Teams(context)
        self._seen: set[bytes] = set()
        self._repeats: dict[bytes, int] = {}

    def ordinal(self, raw: bytes) -> int:
        digest = _digest(raw)
        if digest not in self._seen:
            self._seen.add(digest)
            return 0
        ordinal = self._repeats[digest] = self._repeats.get(digest, 0) + 1
        return ordinal

    def remember(self, values: Mapping[str, str]) -> dict[str, object]:
        return self._teams.remember(self._cluster, values["cluster"])

    def jobs(self, rows: Columns) -> Iterator[UnderstoodJob | None]:
        accounts, seen = self._teams.known(self._cluster), self._seen
        fields = zip(
            rows.raws(),
            self._times.column(rows["timestamp"]),
            whole_seconds(rows["duration"]),
            each(rows["num_gpus"], partial(gpu_count, "num_gpus")),
            whole_seconds(rows["gpu_time"]),
            rows["cluster"],
            strict=True,
        )
        for raw, start_s, duration_s, gpus, gpu_s, team in fields:
            account = accounts.get(team)  # a row before may have been its first
            if (
                account is None
                or duration_s is None
                or gpus is None
                or start_s < 0
                or gpu_s != duration_s * gpus
                or start_s + duration_s >= END_OF_TIME_S
                or (digest := hashlib.sha256(raw).digest()[:_ID_BYTES]) in seen
            ):
                yield None
                continue
            seen.add(digest)
            job = Job(
                source=self._source,
                cluster=self._cluster,
                workload=digest.hex(),
                account=account,
                user=NO_USER,
                gpus_milli=gpus * GPU_MILLI,
                submitted_s=start_s,
                started_s=start_s,
                ended_s=start_s + duration_s,
                reason="unknown",
            )
            yield job, ()

    def job(self, record: Record) -> UnderstoodJob:
        values = record.values
        start_s, doubt = self._times.read("timestamp", values["timestamp"])
        duration_s, fraction = seconds_and_fraction("duration", values["duration"])
        gpus = gpu_count("num_gpus", values["num_gpus"])
        end_s = instant_in_bounds("duration", start_s + duration_s, values["duration"])
        account, oddities = self._teams.account("cluster", self._cluster, values["cluster"])
        workload = _digest(record.raw).hex()
        if doubt:
            oddities = [*oddities, doubt]
        if record.ordinal:
            workload += f"-{record.ordinal}"
            message = f"identical to {record.ordinal} earlier row(s); kept: nothing says that it is a repeat"
            oddities = [*oddities, ("identical-row", message)]
        if odd := _gpu_time_differs(values, duration_s, fraction, gpus):
            oddities = [*oddities, odd]
        job = Job(
            source=self._source,
            cluster=self._cluster,
            workload=workload,
            account=account,
            user=NO_USER,
            gpus_milli=gpus * GPU_MILLI,
            submitted_s=start_s,
            started_s=start_s,
            ended_s=end_s,
            reason="unknown",
        )
        return job, oddities


@lru_cache(maxsize=1)  # a row's place among identical ones and its name both follow from it
def _digest(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()[:_ID_BYTES]


def _gpu_time_differs(values: Mapping[str, str], duration_s: int, fraction: str, gpus: int) -> Odd | None:
    """Compare the row's own product with ours, exactly; ours is what is booked."""
    if not fraction and values["gpu_time"] == f"{duration_s * gpus}.0":
        return None  # as almost every row is written
    scale = 10 ** len(fraction)
    product = (duration_s * scale + int(fraction or 0)) * gpus
    try:
        whole, own_fraction = seconds_and_fraction("gpu_time", values["gpu_time"])
    except BadRecord as error:
        return "gpu-time-differs", f"{error.message}; duration x num_gpus is booked"
    own = whole * 10 ** len(own_fraction) + int(own_fraction or 0)
    if own * scale == product * 10 ** len(own_fraction):
        return None
    product_shown = f"{shown(values['duration'])} x {gpus}"
    return (
        "gpu-time-differs",
        f"gpu_time: {shown(values['gpu_time'])} is not {product_shown}, which is booked",
    )
