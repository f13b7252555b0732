"""``gpuledger inventory apply``: what is installed, host by host, and the commands that make the ledger say so.

A file is the whole inventory of the clusters it names: hosts that it leaves out are retired.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from gpuledger.database.engine import Reader
from gpuledger.events import host
from gpuledger.ingest.changes import Change
from gpuledger.ingest.yaml_file import ClusterName, Strict, Word, read_yaml
from gpuledger.kernel.clock import instant
from gpuledger.ledger.copying import driver

DOCS = "docs/inventory-file.md"
SOURCE = "gpuledger/inventory-file"

Gpus = Annotated[int, Field(ge=0, le=10_000_000)]
PerHost = Annotated[int, Field(ge=1, le=10_000)]


class Installed(NamedTuple):
    """The GPUs of one host, and whether the good ones may be used while others are in trouble."""

    gpus: int
    model: str
    partial_use: bool = False


class Host(Strict):
    """One machine."""

    name: Word
    gpus: PerHost
    model: Word
    partial_use: bool | None = None


class Cluster(Strict):
    """What is installed: hosts by name, or a number of GPUs on hosts of equal size."""

    hosts: tuple[Host, ...] | None = None
    gpus: Gpus | None = None
    model: Word | None = None
    gpus_per_host: PerHost = 8
    partial_use: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.hosts is None) == (self.gpus is None):
            raise ValueError("write either hosts, or gpus and model")
        if self.gpus is not None and self.model is None:
            raise ValueError("model is missing")
        names = [h.name for h in self.hosts or ()]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"host {twice[0]} stands twice")
        return self

    def by_host(self, cluster: str) -> dict[str, Installed]:
        """Return host -> what is installed in it; hosts of equal size are named ``CLUSTER-0001`` and on."""
        if self.hosts is not None:
            return {
                h.name: Installed(
                    h.gpus, h.model, self.partial_use if h.partial_use is None else h.partial_use
                )
                for h in self.hosts
            }
        even = even_hosts(cluster, self.gpus or 0, self.model or "", self.gpus_per_host)
        return {name: installed._replace(partial_use=self.partial_use) for name, installed in even.items()}


class InventoryFile(Strict):
    """The whole file."""

    clusters: dict[ClusterName, Cluster] = Field(default_factory=dict)


def read(path: Path) -> InventoryFile:
    """Read and validate an inventory file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    return read_yaml(path, InventoryFile, DOCS)


def even_hosts(cluster: str, gpus: int, model: str, gpus_per_host: int) -> dict[str, Installed]:
    """Return hosts of equal size; the last one holds what is left."""
    full, rest = divmod(gpus, gpus_per_host)
    sizes = [gpus_per_host] * full + [rest] * (rest > 0)
    return {f"{cluster}-{number:04d}": Installed(size, model) for number, size in enumerate(sizes, 1)}


def plan(reader: Reader, file: InventoryFile, at_s: int) -> list[Change]:
    """Return the commands that turn the ledger's inventory of a moment into the file's, a change a host."""
    return [
        change
        for name, cluster in file.clusters.items()
        for change in _hosts(name, cluster.by_host(name), present(reader, name, at_s))
    ]


def present(reader: Reader, cluster: str, at_s: int) -> dict[str, Installed]:
    """Return host -> what the ledger says was installed in it at a moment."""
    rows = driver(reader).execute(
        "SELECT host, sum(gpus)::bigint, gpu_model, partial_use FROM ledger.hosts"
        " WHERE book = %(book)s AND until_seq IS NULL"
        " AND from_at <= %(at)s AND (to_at IS NULL OR to_at > %(at)s) GROUP BY host, gpu_model, partial_use",
        {"book": cluster, "at": instant(at_s)},
    )
    return {name: Installed(gpus, model, partial_use) for name, gpus, model, partial_use in rows}


def _hosts(cluster: str, wanted: Mapping[str, Installed], have: Mapping[str, Installed]) -> Iterator[Change]:
    for name in sorted(wanted.keys() | have.keys()):
        was, shall = have.get(name), wanted.get(name)
        if shall is None and was is not None:
            gone = host.Retired(
                cluster=cluster, host=name, gpus=was.gpus, gpu_model=was.model, reason="inventory-file"
            )
            yield Change(f"- host     {cluster} {name}  {was.gpus} x {was.model}", (gone,))
        elif shall is not None and was != shall:
            come = registered(cluster, name, shall)
            before = f"{_shown(was)} -> " if was else ""
            yield Change(f"{'~' if was else '+'} host     {cluster} {name}  {before}{_shown(shall)}", (come,))


def _shown(installed: Installed) -> str:
    return f"{installed.gpus} x {installed.model}" + ", partial use" * installed.partial_use


def registered(cluster: str, name: str, installed: Installed) -> host.Registered:
    """Return the command that says what is installed in a host."""
    return host.Registered(
        cluster=cluster,
        host=name,
        gpus=installed.gpus,
        gpu_model=installed.model,
        partial_use=installed.partial_use,
    )
