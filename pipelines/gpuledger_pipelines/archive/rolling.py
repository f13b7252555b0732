"""The roll-up of days of a cluster from the archive, held against the manifests and the warehouse."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from gpuledger.kernel.errors import Corrupt, NotFound, Refused
from gpuledger_pipelines.archive import layout
from gpuledger_pipelines.archive import manifest as manifests
from gpuledger_pipelines.archive.contents import DATASETS, TELEMETRY, USAGE
from gpuledger_pipelines.archive.expression import usage_hour
from gpuledger_pipelines.archive.layout import Place
from gpuledger_pipelines.archive.manifest import Manifest
from gpuledger_pipelines.partitions import DAY_S

if TYPE_CHECKING:
    import pyarrow as pa

    from gpuledger_pipelines.archive.engines import Connected


class Key(NamedTuple):
    """What names a row."""

    hour_s: int
    account: str
    klass: str


class Amounts(NamedTuple):
    """What a row says, in gpu_ms."""

    gpu_ms: int
    sampled_gpu_ms: int
    used_gpu_ms: int


Rows = Mapping[Key, Amounts]


@dataclass(frozen=True, slots=True)
class Days:
    """Days of one cluster, all of which the archive has.

    Args:
        cluster: The cluster.
        first: The first UTC day.
        end: The day after the last one.
        manifests: Those of their files, by dataset.
        files: The files, by dataset.
    """

    cluster: str
    first: dt.date
    end: dt.date
    manifests: Mapping[str, Sequence[Manifest]]
    files: Mapping[str, Sequence[Path]]

    @property
    def known_seq(self) -> int:
        """The newest row of the book that all files know at least."""
        return min(m.known_seq for each in self.manifests.values() for m in each)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that archive and warehouse do not tell alike; None where one of them has none.

    Args:
        key: Which row.
        archive: What the archive comes to.
        warehouse: What the warehouse has.
    """

    key: Key
    archive: Amounts | None
    warehouse: Amounts | None


def days_of(root: Path, cluster: str, first: dt.date | None, end: dt.date | None) -> Days:
    """Return days of a cluster, each with its files.

    Args:
        root: The archive's folder.
        cluster: The cluster.
        first: The first day; the first that the archive has unless given.
        end: The day after the last one; that of the archive unless given.

    Raises:
        NotFound: When the archive has none, or one in between is missing.
        Refused: When the end is not after the beginning.
        Corrupt: When a file is not what its manifest tells of.
    """
    have = sorted({place.day for place in layout.places(root, cluster)})
    if not have:
        raise NotFound(
            f"the archive in {root} has no day of {cluster!r}",
            hint=f"it has: {', '.join(layout.clusters(root)) or 'no cluster'}; gpuledger archive write fills it",
        )
    first, end = first or have[0], end or have[-1] + dt.timedelta(days=1)
    if first >= end:
        raise Refused(f"no day lies in [{first}, {end})", hint="--to is the day after the last one")
    found: dict[str, list[Manifest]] = {name: [] for name in DATASETS}
    files: dict[str, list[Path]] = {name: [] for name in DATASETS}
    for n in range((end - first).days):
        for name in DATASETS:
            place = Place(name, cluster, first + dt.timedelta(days=n))
            found[name].append(manifests.read(root, place))
            files[name].append(manifests.data_of(root, found[name][-1], place))
    return Days(cluster, first, end, found, files)


def roll_up(engine: "Connected", days: Days, rung: str) -> "pa.Table":
    """Return usage by account, class and hour, as the warehouse has it.

    Raises:
        Corrupt: When the rows do not sum to what the manifests tell of.
        Unavailable: When the engine gives up.
    """
    usage, telemetry = (engine.table(days.files[each.name]) for each in (USAGE, TELEMETRY))
    rows = engine.run(usage_hour(usage, telemetry, rung))
    _check_sums(rows, days, rung)
    return rows


def _check_sums(rows: "pa.Table", days: Days, rung: str) -> None:
    """See that no row was lost or counted twice on the way through the engine."""
    import pyarrow.compute as pc

    wanted = {
        "gpu_ms": _sum(days.manifests[USAGE.name], "gpu_ms"),
        "sampled_gpu_ms": _sum(days.manifests[TELEMETRY.name], f"{rung}/owned_sampled_gpu_ms"),
    }
    for name, amount in wanted.items():
        if (found := pc.sum(rows[name]).as_py() or 0) != amount:
            raise Corrupt(
                f"{days.cluster}, {days.first} to {days.end}: {name} of the roll-up is {found:,}, and the manifests"
                f" tell of {amount:,}",
                hint="gpuledger archive verify names the file",
            )


def _sum(found: Sequence[Manifest], name: str) -> int:
    return sum(manifest.sums.get(name, 0) for manifest in found)


def by_key(rows: "pa.Table") -> Rows:
    """Return the rows of a roll-up by what names them."""
    columns = [rows[name].to_pylist() for name in rows.column_names]
    return {Key(*row[:3]): Amounts(*row[3:]) for row in zip(*columns, strict=True)}


def warehouse_rows(connection: sa.Connection, days: Days) -> Rows:
    """Return what ``warehouse.usage_hour`` says of the days."""
    found = connection.execute(
        sa.text(
            "SELECT floor(extract(epoch FROM hour_at))::bigint, account, class, gpu_ms, sampled_gpu_ms, used_gpu_ms"
            " FROM warehouse.usage_hour"
            " WHERE cluster = :cluster AND hour_at >= to_timestamp(:from_s) AND hour_at < to_timestamp(:to_s)"
        ),
        {"cluster": days.cluster, "from_s": _start_s(days.first), "to_s": _start_s(days.end)},
    )
    return {Key(*row[:3]): Amounts(*row[3:]) for row in found}


def differences(archive: Rows, warehouse: Rows) -> Iterator[Difference]:
    """Yield, in order, the rows that the two do not tell alike."""
    for key in sorted(archive.keys() | warehouse.keys()):
        if archive.get(key) != warehouse.get(key):
            yield Difference(key, archive.get(key), warehouse.get(key))


def _start_s(day: dt.date) -> int:
    return (day - dt.date(1970, 1, 1)).days * DAY_S
