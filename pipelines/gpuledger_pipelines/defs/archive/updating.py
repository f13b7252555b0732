"""Bringing the archive up to date: days that are over since and those that late facts touch, or days that are named."""

import datetime as dt
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import sqlalchemy as sa

from gpuledger.database.engine import Reader, reading
from gpuledger.database.turns import one_at_a_time
from gpuledger.kernel.errors import Conflict, Corrupt, NotFound, Refused
from gpuledger_pipelines.archive import manifest as manifests
from gpuledger_pipelines.archive.layout import known_file
from gpuledger_pipelines.archive.writing import Written, write_day
from gpuledger_pipelines.defs.late.touched import Mark, present, touched
from gpuledger_pipelines.partitions import DAY_S
from gpuledger_pipelines.resources import PROGRESS, calendar
from gpuledger_pipelines.schedules import CLUSTERS_WITH_USAGE

PATIENCE_S = 600
"""How long a writer waits for another one of the same cluster."""


@dataclass(slots=True)
class Update:
    """What was done to the archive of one cluster.

    Args:
        cluster: The cluster.
        days: Days that were looked at.
        changed: Those of which a file was put in its place.
        files_written: Files that were put in their place.
        files_unchanged: Files that say what they said before.
        rows: Rows of the files written, by dataset.
        bytes: Their size, by dataset.
        known_seq: The newest row of the book that the archive knows now; None where only named days were written.
    """

    cluster: str
    days: int = 0
    changed: list[dt.date] = field(default_factory=list)
    files_written: int = 0
    files_unchanged: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    known_seq: int | None = None

    def as_json(self) -> dict[str, object]:
        """Return it under the published keys: how many days, not which."""
        return {key: value for key, value in asdict(self).items() if key != "changed"}

    def count(self, written: Sequence[Written]) -> None:
        """Count a day."""
        self.days += 1
        if any(each.changed for each in written):
            self.changed.append(written[0].place.day)
        for each in written:
            if not each.changed:
                self.files_unchanged += 1
                continue
            name = each.place.dataset
            self.files_written += 1
            self.rows[name] = self.rows.get(name, 0) + each.manifest.rows
            self.bytes[name] = self.bytes.get(name, 0) + each.manifest.bytes


def update(engine: sa.Engine, root: Path, cluster: str, now_s: int) -> Update:
    """Write every day of a cluster that the archive does not have, or that the book tells otherwise since.

    Days that were written stay when it is stopped; the next call goes on.

    Args:
        engine: Reads ``ledger_read``.
        root: The archive's folder.
        cluster: The cluster, which is also the book.
        now_s: The present, in seconds since the epoch.

    Raises:
        NotFound: When there is no such cluster.
        Conflict: When another writer of the cluster does not come to an end.
        Unavailable: When the database or the folder cannot be used.
    """
    with alone(engine, cluster):
        before = read_mark(known_file(root, cluster))
        with reading(engine) as reader:
            marks = present(reader, now_s)
            if cluster not in marks:
                raise NotFound(
                    f"no cluster {cluster!r}", hint=f"known clusters: {', '.join(marks) or 'none yet'}"
                )
            now = _onward(before, marks[cluster], _evidence_until_s(reader, cluster, now_s))
            days = touched(reader, calendar(reader), cluster, before, now).days
        done = _written(engine, root, cluster, days)
        if before != now:
            write_mark(known_file(root, cluster), now)
    done.known_seq = now.seq
    return done


def _onward(before: Mark | None, now: Mark, evidence_until_s: int) -> Mark:
    """Return the mark to go to: not beyond what anything is known of, and not back.

    A trace from years ago has no days since. (A source that is heard of for the first time turns no day back either.)
    """
    until_s = min(now.until_s, evidence_until_s + -evidence_until_s % DAY_S)
    return Mark(now.seq, now.org_seq, until_s if before is None else max(before.until_s, until_s))


def _evidence_until_s(reader: Reader, cluster: str, now_s: int) -> int:
    """Return until when a run held something, or a sample was taken; open runs go on until the present."""
    found = reader.execute(
        sa.text(
            "SELECT floor(extract(epoch FROM greatest("
            "(SELECT max(coalesce(until_at, to_timestamp(:now_s))) FROM ledger_read.segments WHERE cluster = :cluster),"
            " (SELECT max(bucket_at) + interval '5 minutes' FROM ledger_read.buckets WHERE cluster = :cluster)"
            ")))::bigint"
        ),
        {"cluster": cluster, "now_s": now_s},
    ).scalar()
    return int(found or 0)


def write_days(
    engine: sa.Engine, root: Path, cluster: str, first: dt.date, end: dt.date, now_s: int
) -> Update:
    """Write the UTC days ``[first, end)`` of a cluster, whatever is known of what touched them.

    Raises:
        NotFound: When there is no such cluster.
        Refused: When a day is not over.
        Conflict: When another writer of the cluster does not come to an end.
        Unavailable: When the database or the folder cannot be used.
    """
    over = dt.date(1970, 1, 1) + dt.timedelta(days=now_s // DAY_S)
    if end > over:
        raise Refused(
            f"{end - dt.timedelta(days=1)} is not over", hint=f"a day is archived once it is: --to {over}"
        )
    if first >= end:
        raise Refused(f"no day lies in [{first}, {end})", hint="--to is the day after the last one")
    with reading(engine) as reader:
        if cluster not in (known := present(reader, now_s)):
            raise NotFound(
                f"no cluster {cluster!r}", hint=f"known clusters: {', '.join(known) or 'none yet'}"
            )
    days = [first + dt.timedelta(days=n) for n in range((end - first).days)]
    with alone(engine, cluster):
        return _written(engine, root, cluster, days)


def known_clusters(engine: sa.Engine) -> list[str]:
    """Return the clusters that the ledger has usage of, in order."""
    with reading(engine) as reader:
        return list(reader.execute(sa.text(CLUSTERS_WITH_USAGE)).scalars())


def read_mark(path: Path) -> Mark | None:
    """Return how far an archive is, from the file that says so; None when there is none.

    Raises:
        Corrupt: When the file says something else.
        Unavailable: When it cannot be read.
    """
    try:
        return msgspec.json.decode(manifests.content_of(path), type=Mark)
    except NotFound:
        return None
    except msgspec.DecodeError as error:
        raise Corrupt(
            f"{path} does not say how far the archive is: {error}",
            hint="delete it: the next gpuledger archive write looks at every day",
        ) from error


def write_mark(path: Path, mark: Mark) -> None:
    """Say how far an archive is."""
    manifests.publish(path, manifests.encode(mark))


def alone(engine: sa.Engine, cluster: str) -> AbstractContextManager[None]:
    """Keep other writers of the cluster's archive waiting until the block ends.

    Raises:
        Conflict: When another one does not come to an end.
        Unavailable: When the database cannot be reached.
    """
    busy = Conflict(
        f"another writer of the archive of {cluster} is at work",
        hint="wait for it; what it leaves undone is done by the next",
    )
    return one_at_a_time(engine, f"archive/{cluster}", busy, PATIENCE_S)


def _written(engine: sa.Engine, root: Path, cluster: str, days: Sequence[dt.date]) -> Update:
    done = Update(cluster)
    for day in days:
        done.count(write_day(engine, root, cluster, day))
        PROGRESS.info("%s: %s: archived, %d of %d days", cluster, day, done.days, len(days))
    return done
