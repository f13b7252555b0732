"""The mapping file: rules from foreign names to accounts and terms. Read strictly."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.events.mapping import Kind, MappingRule, check
from gpuledger.events.workload import WorkloadClass
from gpuledger.ingest.yaml_file import Strict, Word, read_yaml
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import policies, remapping
from gpuledger.ledger.as_of import Vector, seq_of
from gpuledger.ledger.identity import names_of, tokens_of, with_tokens
from gpuledger.ledger.mapping import Version
from gpuledger.ledger.remapping import Survey

SECONDS_MAX = 366 * 86_400

PLANNED = 2**62
"""Stands for the row of ``~org`` that rules will be set by: later than all that are there."""


def _several(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[Word, ...], Field(min_length=1), BeforeValidator(_several)]
"""One name, or several of which one must match."""


class When(Strict):
    """The conditions of a rule; each that is given must hold.

    Args:
        cluster: Globs of clusters.
        account: Globs of the account as the source gives it, with or without the cluster before it.
        user: People, in full.
        partition: Globs of the label ``partition``; ``qos`` and ``queue`` likewise.
        labels: Globs of any other label.
    """

    cluster: Names | None = None
    account: Names | None = None
    user: Names | None = None
    partition: Names | None = None
    qos: Names | None = None
    queue: Names | None = None
    labels: dict[Word, Names] = Field(default_factory=dict)

    @property
    def all_labels(self) -> dict[str, tuple[str, ...]]:
        """Every condition on a label, those with a key of their own among them."""
        own = {"partition": self.partition, "qos": self.qos, "queue": self.queue}
        return {**self.labels, **{name: values for name, values in own.items() if values is not None}}


class Rule(Strict):
    """One rule.

    Args:
        when: Whose work it is about; everybody's unless given.
        account: Who pays, with ``{...}`` for parts of the foreign name; as the source gives it unless given.
        klass: ``class`` in the file.
        minimum_runtime_s: Of workloads that declare none.
        resumable: Of workloads that do not say.
        kind: Of workloads that do not say.
    """

    when: When = When()
    account: Word | None = None
    klass: WorkloadClass | None = Field(default=None, alias="class")
    minimum_runtime_s: Annotated[int, Field(ge=0, le=SECONDS_MAX)] | None = None
    resumable: bool | None = None
    kind: Kind | None = None

    @model_validator(mode="after")
    def _is_sound(self) -> "Rule":
        twice = {"partition", "qos", "queue"} & self.when.labels.keys()
        if twice:
            raise PydanticCustomError("label", "labels: {name} has a key of its own", {"name": min(twice)})
        try:
            check(self.as_rule())
        except Refused as error:  # named with its place, beside the other faults of the file
            said = f"{error.message}; {error.hint}"
            raise PydanticCustomError("rule", "{said}", {"said": said}) from error
        return self

    def as_rule(self) -> MappingRule:
        """Return the rule as it is journalled, people by their names."""
        return MappingRule(
            cluster=self.when.cluster or (),
            account=self.when.account or (),
            user=self.when.user or (),
            labels=self.when.all_labels,
            to=self.account,
            klass=self.klass,
            minimum_runtime_s=self.minimum_runtime_s,
            resumable=self.resumable,
            kind=self.kind,
        )


class MappingFile(Strict):
    """The whole file: the first rule that matches counts."""

    rules: tuple[Rule, ...]

    def as_rules(self) -> list[MappingRule]:
        """Return the rules as they are journalled, people by their names."""
        return [rule.as_rule() for rule in self.rules]


def read(path: Path) -> MappingFile:
    """Read and validate a mapping file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    return read_yaml(path, MappingFile, "docs/mapping-file.md")


class Plan(NamedTuple):
    """What a file would change.

    Args:
        changes: Rules that come and go from a moment on, a line each; empty when the same are in force then.
        supersedes: The row of ``~org`` whose rules are in force then.
        later: From when on other rules, which were set before, stay in force all the same; None for never.
        survey: What it makes of all that is known.
    """

    changes: list[str]
    supersedes: int | None
    later: int | None
    survey: Survey


def plan(
    reader: Reader,
    rules: Sequence[MappingRule],
    at_s: int,
    now_s: int,
    calendar: Calendar,
    cluster: str | None = None,
    *,
    vector: Vector | None = None,
) -> Plan:
    """Return what rules would change from a moment on.

    Args:
        reader: A snapshot.
        rules: As a file gives them, people by their names.
        at_s: From when on, seconds since the epoch.
        now_s: The present: open runs count up to here.
        calendar: The organisation's days and periods.
        cluster: One cluster to look at, or all.
        vector: Book -> the row up to which it is read; now unless given.
    """
    versions = remapping.versions(reader, org_seq=seq_of(vector, ORG_BOOK))
    current = policies.in_force(versions, at_s)
    wanted = with_tokens(rules, tokens_of(reader, (name for rule in rules for name in rule.user)))
    changes = (
        [] if current is not None and list(current.rules) == wanted else _changes(reader, current, rules)
    )
    planned = [*versions, Version(at_s, PLANNED, wanted)] if changes else versions
    return Plan(
        changes,
        current.org_seq if current else None,
        min((version.from_s for version in versions if version.from_s > at_s), default=None),
        remapping.survey(reader, planned, now_s, calendar, cluster, vector=vector),
    )


def shown(rule: MappingRule) -> str:
    """Return a rule on one line, people by the names that stand in it."""
    conditions: list[tuple[str, Sequence[str]]] = [
        ("cluster", rule.cluster), ("account", rule.account), ("user", rule.user), *sorted(rule.labels.items()),
    ]  # fmt: skip
    when = " and ".join(f"{name} {'|'.join(values)}" for name, values in conditions if values)
    terms = [
        rule.to or "account as given",
        *([rule.klass] if rule.klass else []),
        *([f"minimum runtime {rule.minimum_runtime_s} s"] if rule.minimum_runtime_s is not None else []),
        *([] if rule.resumable is None else ["resumable" if rule.resumable else "not resumable"]),
        *([rule.kind] if rule.kind else []),
    ]
    return f"{when or 'everything'} -> {', '.join(terms)}"


def _changes(reader: Reader, current: Version | None, rules: Sequence[MappingRule]) -> list[str]:
    """Return the rules that go and come, a line each, in the order in which they are tried."""
    before = current.rules if current else ()
    names = names_of(reader, (token for rule in before for token in rule.user))
    known = {token: name for token, name in names.items() if token is not None}
    old, new = [shown(rule) for rule in with_tokens(before, known)], [shown(rule) for rule in rules]
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    found = [f"{line[0]} rule     {line[1:]}" for line in lines if not line.startswith("@@")]
    return found or ["~ rules    none: accounts stay as their sources give them"]
