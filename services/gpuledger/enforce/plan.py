"""What is to be changed, and what somebody else changed: targets against what a scheduler says. Pure.

An enforcer for a scheduler computes *targets*: for one field of one object what it is, what it has to be, why, and the
exact action that makes it so. What differs is a change. A field that is not as it was last set is a drift: somebody
changed it by hand.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias


class Command(NamedTuple):
    """A command of the scheduler, word by word."""

    words: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The command as a person would type it; words with blanks in quotes."""
        return " ".join(f"'{word}'" if " " in word else word for word in self.words)


class Patch(NamedTuple):
    """A JSON patch of a Kubernetes object.

    Args:
        kind: Its kind.
        namespace: Its namespace; empty when it belongs to none.
        name: Its name.
        operations: RFC 6902; a ``test`` before each change, so that an object that moved meanwhile is left alone.
    """

    kind: str
    namespace: str
    name: str
    operations: tuple[Mapping[str, Any], ...]

    @property
    def shown(self) -> str:
        """The same as kubectl would be told, without the tests."""
        changes = [dict(op) for op in self.operations if op["op"] != "test"]
        within = f" -n {self.namespace}" if self.namespace else ""
        return f"kubectl patch {self.kind.lower()} {self.name}{within} --type=json -p '{json.dumps(changes)}'"


class Eviction(NamedTuple):
    """An eviction of a pod, which gives it its own grace period and heeds disruption budgets."""

    namespace: str
    name: str
    uid: str

    @property
    def shown(self) -> str:
        """What is asked of the API; kubectl has no command for it."""
        return f"evict pod {self.name} of namespace {self.namespace}"


Action: TypeAlias = Command | Patch | Eviction

Applied: TypeAlias = Mapping[str, tuple[str, ...]]
"""Key -> what was set last; two values where it is not known whether the second was set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One field of one object: what it is and what it has to be.

    Args:
        object: The object, such as ``account proj-a1``.
        field: The field, such as ``fairshare``.
        now: What it is; None when there is none.
        wanted: What it has to be.
        why: The rest of a sentence that says why.
        action: What makes it so.
        destructive: Whether work is stopped.
        kept: Whether it stays as it is set, so that another value later is somebody else's doing.
    """

    object: str
    field: str
    now: str | None
    wanted: str
    why: str
    action: Action
    destructive: bool = False
    kept: bool = True

    @property
    def key(self) -> str:
        """What names the field among all that were ever set."""
        return f"{self.object}: {self.field}"

    @property
    def sentence(self) -> str:
        """What is to happen and why, for a person."""
        before = "" if self.now is None else f" from {self.now or 'nothing'}"
        return f"{self.object}: {self.field}{before} to {self.wanted or 'nothing'}, {self.why}"


@dataclass(frozen=True, slots=True)
class Drift:
    """A field that somebody else changed.

    Args:
        key: Object and field.
        set_to: What it was set to last.
        found: What it is.
    """

    key: str
    set_to: str
    found: str | None

    @property
    def sentence(self) -> str:
        """What was found, for a person."""
        return f"{self.key} was set to {self.set_to or 'nothing'} and is {self.found or 'nothing'}: changed by hand"


@dataclass(frozen=True, slots=True)
class Draft:
    """What an enforcer wants.

    Args:
        targets: Every field it answers for, in the order in which they are to be set.
        notes: What it does not do, and why: names that cannot be mapped, runs that are still protected.
    """

    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = ()

    def and_then(self, other: "Draft") -> "Draft":
        """Return both, one after the other."""
        return Draft((*self.targets, *other.targets), (*self.notes, *other.notes))


@dataclass(frozen=True, slots=True)
class Plan:
    """What one run of an enforcer is about to do.

    Args:
        cycle: The cycle it follows.
        changes: What differs, in the order in which it is to be set.
        drifts: What somebody else changed since it was set.
        notes: What is not done, and why.
        settled: Key -> value of every kept field that is as it has to be.
    """

    cycle: str
    changes: tuple[Target, ...]
    drifts: tuple[Drift, ...]
    notes: tuple[str, ...]
    settled: Mapping[str, str] = field(default_factory=dict)


def diff(cycle: str, draft: Draft, applied: Applied) -> Plan:
    """Hold what is wanted against what is there, and against what was set last.

    Args:
        cycle: The cycle that the draft follows.
        draft: What is wanted, and what is there.
        applied: Key -> what was set last.
    """
    kept = [target for target in draft.targets if target.kept]
    return Plan(
        cycle=cycle,
        changes=tuple(target for target in draft.targets if target.now != target.wanted),
        drifts=tuple(
            Drift(target.key, applied[target.key][-1], target.now)
            for target in kept
            if target.key in applied and target.now not in applied[target.key]
        ),
        notes=draft.notes,
        settled={target.key: target.wanted for target in kept if target.now == target.wanted},
    )


def drafted(drafts: Iterable[Draft]) -> Draft:
    """Return several drafts as one."""
    whole = Draft()
    for draft in drafts:
        whole = whole.and_then(draft)
    return whole
