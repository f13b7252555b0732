"""Where the files of the archive lie: Hive's layout, which every engine reads, below the version of the schema.

``ROOT/usage/v1/cluster=alex/day=2026-11-30/part-0.parquet``, its manifest ``_manifest.json`` beside it, which engines
pass over because of its first character; and in ``ROOT/known/`` how far the archive of each cluster is.
"""

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuledger.kernel.errors import Refused
from gpuledger_pipelines.archive.contents import DATASETS, SCHEMA_VERSION

DATA, MANIFEST = "part-0.parquet", "_manifest.json"

_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\{}\[\]^\x7f]""")
"""What Hive writes as ``%`` and two digits in the name of a partition."""

_PATTERN = re.compile(r"[*?\[\]{}]")
"""What engines take for a pattern in the name of a file."""


@dataclass(frozen=True, slots=True)
class Place:
    """One file of the archive.

    Args:
        dataset: ``usage`` or ``telemetry``.
        cluster: The cluster, which is also the book.
        day: The UTC day.
    """

    dataset: str
    cluster: str
    day: dt.date

    def folder(self, root: Path) -> Path:
        """Return the folder of the partition."""
        return cluster_folder(root, self.dataset, self.cluster) / f"day={self.day.isoformat()}"


def cluster_folder(root: Path, dataset: str, cluster: str) -> Path:
    """Return the folder that holds the days of a cluster."""
    return root / dataset / f"v{SCHEMA_VERSION}" / f"cluster={escaped(cluster)}"


def known_file(root: Path, cluster: str) -> Path:
    """Return the file that says how far the archive of a cluster is."""
    return root / "known" / f"{escaped(cluster)}.json"


def escaped(value: str) -> str:
    """Return a value as Hive writes it in the name of a partition."""
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", value)


def unescaped(name: str) -> str:
    """Return the value of a partition from its name."""
    return re.sub(r"%([0-9A-F]{2})", lambda match: chr(int(match.group(1), 16)), name)


def checked_root(root: Path) -> Path:
    """Return the archive's folder, absolute.

    Raises:
        Refused: When engines would take its name for a pattern.
    """
    whole = root.absolute()
    if _PATTERN.search(str(whole)):
        raise Refused(
            f"the archive cannot lie in {whole}: engines read *, ?, [ ] and {{ }} as patterns",
            hint="set GPULEDGER_ARCHIVE to another folder",
        )
    return whole


def clusters(root: Path) -> list[str]:
    """Return the clusters of which the archive has a partition, in order."""
    return sorted({place.cluster for place in places(root)})


def places(root: Path, cluster: str | None = None) -> Iterator[Place]:
    """Yield every partition there is a folder of, in order of dataset, cluster and day; other names are passed over."""
    for dataset in DATASETS:
        above = root / dataset / f"v{SCHEMA_VERSION}"
        for folder in sorted(above.glob("cluster=*/day=*")):
            name = unescaped(folder.parent.name.removeprefix("cluster="))
            try:
                day = dt.date.fromisoformat(folder.name.removeprefix("day="))
            except ValueError:
                continue
            if cluster in (None, name):
                yield Place(dataset, name, day)
