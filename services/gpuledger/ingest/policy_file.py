"""The policy file: versions of policy data that people set. Read strictly."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.budget import Repeated, XidTable
from gpuledger.ingest.yaml_file import ClusterName, Settings, Strict, Word, read_yaml
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock
from gpuledger.kernel.knobs import Value
from gpuledger.ledger import health_states, knobs, policies

Weight = Annotated[int, Field(ge=0, le=100_000)]
Xid = Annotated[int, Field(ge=1, le=999)]
State = Literal["healthy", "draining", "unhealthy"]

_HOUR_S = 3600


class Often(Strict):
    """So many times within so many hours."""

    times: Annotated[int, Field(ge=2, le=1000)]
    within_h: Annotated[int, Field(ge=1, le=8784)]


class Xids(Strict):
    """What observations of a device's health mean: the whole table, for nothing of an earlier one stays.

    Args:
        unhealthy: XIDs after which a device cannot be used.
        draining: XIDs after which it must be reset once its runs are over.
        application: XIDs that a program causes.
        repeated: XID -> how often it must come for a device to be unhealthy.
        remap_failed: The state of a device whose rows could not be remapped.
        remap_pending: The state of a device that waits for a reset to remap rows.
        lost: The state of a device that the driver cannot reach.
    """

    unhealthy: list[Xid]
    draining: list[Xid]
    application: list[Xid]
    repeated: dict[Xid, Often]
    remap_failed: State
    remap_pending: State
    lost: State

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        self.table()
        return self

    def table(self) -> XidTable:
        """Return the table as events carry it, its lists in order."""
        return XidTable(
            unhealthy=sorted(self.unhealthy),
            draining=sorted(self.draining),
            application=sorted(self.application),
            repeated={
                code: Repeated(times=often.times, within_s=often.within_h * _HOUR_S)
                for code, often in sorted(self.repeated.items())
            },
            remap_failed=self.remap_failed,
            remap_pending=self.remap_pending,
            lost=self.lost,
        )


class PolicyFile(Strict):
    """The whole file.

    Args:
        rate_card: GPU model -> weight in per mille; models that are left out keep theirs.
        xid_table: What observations of health mean; the table in force stays when it is left out.
        settings: Knob of the policy -> value, for every cluster; null takes back what was set, what is left out stays.
        cluster_settings: Cluster -> the same for its own cycles, where they differ.
    """

    rate_card: dict[Word, Weight] = Field(default_factory=dict)
    xid_table: Xids | None = None
    settings: Settings = Field(default_factory=dict)
    cluster_settings: dict[ClusterName, Settings] = Field(default_factory=dict)

    def all_settings(self) -> Iterator[tuple[str | None, Mapping[str, Value | None]]]:
        """Yield (cluster, its settings), those of every cluster under None first."""
        if self.settings:
            yield None, self.settings
        yield from sorted((cluster, wanted) for cluster, wanted in self.cluster_settings.items() if wanted)


def read(path: Path) -> PolicyFile:
    """Read and validate a policy file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    return read_yaml(path, PolicyFile, "docs/policy-file.md")


def plan(reader: Reader, file: PolicyFile, at_s: int) -> list[str]:
    """Return what the file changes from a moment on, a line each.

    Raises:
        Refused: When settings of the policy would not go together, then or at a later moment for which some are set.
    """
    changed = policies.changed_weights(reader, file.rate_card, at_s)
    weights = [
        f"~ weight   {model}  {before} -> {wanted} per mille" for model, (before, wanted) in changed.items()
    ]
    table = _table_changes(reader, file.xid_table.table(), at_s) if file.xid_table else ()
    return [*weights, *table, *_settings_changes(reader, file, at_s)]


def put(writer: Writer, file: PolicyFile, at_s: int, by: str, *, clock: Clock, calendar: Calendar) -> None:
    """Put what the file changes in force from a moment on."""
    if policies.changed_weights(writer, file.rate_card, at_s):
        policies.set_weights(writer, file.rate_card, at_s, by, clock=clock, calendar=calendar)
    if file.xid_table is not None:
        policies.set_xid_table(writer, file.xid_table.table(), at_s, by, clock=clock, calendar=calendar)
    for cluster, wanted in file.all_settings():
        policies.put_settings(writer, cluster, wanted, at_s, by, clock=clock, calendar=calendar)


def _settings_changes(reader: Reader, file: PolicyFile, at_s: int) -> list[str]:
    found = knobs.versions(reader)
    newest = max((version.org_seq for version in found), default=0)
    told = [knobs.Version(at_s, newest + 1, cluster, wanted) for cluster, wanted in file.all_settings()]
    if (refused := knobs.contradiction(found, [*found, *told], at_s)) is not None:
        raise refused
    return [
        f"~ setting  {f'{cluster}: ' if cluster else ''}{name}  {_shown(before)} -> {_shown(value)}"
        for cluster, wanted in file.all_settings()
        for name, (before, value) in policies.changed_settings(reader, cluster, wanted, at_s).items()
    ]


def _shown(value: Value | None) -> str:
    return "not set" if value is None else str(value)


def _table_changes(reader: Reader, wanted: XidTable, at_s: int) -> list[str]:
    before = meanings(health_states.tables(reader).at(at_s))
    after = meanings(wanted)
    return [
        f"~ xid      {what}  {before.get(what, 'nothing')} -> {after.get(what, 'nothing')}"
        for what in sorted({*before, *after}, key=lambda what: (len(what), what))
        if before.get(what) != after.get(what)
    ]


def meanings(table: XidTable) -> dict[str, str]:
    """Return what each XID and each state of row remapping means, for people."""
    found = {str(code): "unhealthy" for code in table.unhealthy}
    found |= {str(code): "draining" for code in table.draining}
    found |= {str(code): "application" for code in table.application}
    for code, often in table.repeated.items():
        found[str(code)] = f"unhealthy when {often.times} times in {often.within_s // _HOUR_S} h"
    return {
        **found,
        "remap_failed": table.remap_failed,
        "remap_pending": table.remap_pending,
        "lost": table.lost,
    }
