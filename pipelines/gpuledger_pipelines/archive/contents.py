"""What the files of the archive hold, column by column, and what is added up beside them.

A row says nothing of another day than its own: runs are cut at midnight, and what changes elsewhere in a run (its end,
its estimate, its model) is left out. So a late fact changes the files of the days that it is about, and no others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Sums = Mapping[str, int]

SCHEMA_VERSION = 1
"""Of the columns below and what they mean. Another one is another folder, and old files stay readable."""

HOST_SEPARATOR = "\x1f"
"""Between the names of hosts on the way from the database."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A kind of file.

    Args:
        name: ``usage`` or ``telemetry``; also the name of its statement.
        schema: Its columns, each with what it means.
        by: The column by which sums are kept apart; None for sums over all rows.
        amounts: Columns that are added up.
        owned: The column whose sum is kept for rows that have an account, too.
    """

    name: str
    schema: pa.Schema
    amounts: tuple[str, ...]
    by: str | None = None
    owned: str | None = None

    @property
    def statement(self) -> str:
        """The SELECT that gives the rows of a day, in their order."""
        return _statement(self.name)

    def add_up(self, table: pa.Table, sums: dict[str, int]) -> None:
        """Add the rows of a table to sums by name."""
        parts = (
            {"": table}
            if self.by is None
            else {f"{value}/": _rows_of(table, self.by, value) for value in _values(table, self.by)}
        )
        for prefix, part in parts.items():
            for name in self.amounts:
                _add(sums, prefix + name, _total(part, name))
            if self.owned is not None:
                whose = part.filter(pc.is_valid(part["account"]))
                _add(sums, f"{prefix}owned_{self.owned}", _total(whose, self.owned))


def _field(name: str, kind: pa.DataType, comment: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"comment": comment})


USAGE = Dataset(
    "usage",
    pa.schema(
        [
            _field("workload", pa.string(), "what a user submitted"),
            _field("run", pa.string(), "its placement"),
            _field("account", pa.string(), "path of the account that it counts under"),
            _field("class", pa.string(), "allocated or unallocated"),
            _field("user_token", pa.string(), "the person, as the journal knows them"),
            _field("gpus_milli", pa.int64(), "milli-GPU that it held"),
            _field("hosts", pa.list_(pa.string()), "hosts that it names"),
            _field("from_s", pa.int64(), "seconds since 1970: from when on that day"),
            _field(
                "to_s", pa.int64(), "seconds since 1970: until when (exclusive), at most the end of the day"
            ),
        ]
    ),
    amounts=("gpu_ms",),
)

TELEMETRY = Dataset(
    "telemetry",
    pa.schema(
        [
            _field("gpu", pa.string(), "the device"),
            _field("rung", pa.string(), "gpu_util, gr_engine_active, sm_active or tensor_active"),
            _field("bucket_s", pa.int64(), "seconds since 1970: start of five minutes"),
            _field("workload", pa.string(), "empty when no known run held it"),
            _field("run", pa.string(), "or the handle that the host gave, or empty"),
            _field("account", pa.string(), "whose the run was when the five minutes ended", nullable=True),
            _field("class", pa.string(), "allocated or unallocated, likewise", nullable=True),
            _field("sampled_gpu_ms", pa.int64(), "gpu_ms that it was seen for"),
            _field("used_gpu_upms", pa.int64(), "gpu_ms x parts per million of the rung"),
        ]
    ),
    amounts=("sampled_gpu_ms", "used_gpu_upms"),
    by="rung",
    owned="sampled_gpu_ms",
)

DATASETS = {dataset.name: dataset for dataset in (USAGE, TELEMETRY)}


def _total(table: pa.Table, name: str) -> int:
    """Return the sum of a column; gpu_ms of usage is what its rows come to."""
    if name == "gpu_ms":
        held_s = pc.subtract_checked(table["to_s"], table["from_s"])
        return int(pc.sum(pc.multiply_checked(table["gpus_milli"], held_s)).as_py() or 0)
    return int(pc.sum(table[name]).as_py() or 0)


def _values(table: pa.Table, name: str) -> list[str]:
    return sorted(pc.unique(table[name]).to_pylist())


def _rows_of(table: pa.Table, name: str, value: str) -> pa.Table:
    return table.filter(pc.equal(table[name], value))


def _add(sums: dict[str, int], name: str, amount: int) -> None:
    sums[name] = sums.get(name, 0) + amount


@cache
def _statement(name: str) -> str:
    return (resources.files("gpuledger_pipelines.archive") / "sql" / f"{name}.sql").read_text()
