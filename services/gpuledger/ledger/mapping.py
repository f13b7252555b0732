"""What foreign names mean: who pays for a workload, and under which terms it runs. Pure.

Rules come in versions, each in force for the workloads that are submitted from its moment on: a workload has one
payer from its first wait to its last run. Of the rules in force the first that matches counts. What none of them
matches, or comes from before all of them, the next version decides that has a rule for it, in the order in which
versions were set: a later rule books anew what had no owner, and moves nothing of before its moment that had one. What
no version matches belongs to ``unmapped/NAME``. When a book learned of a version makes no difference.
"""

import fnmatch
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

from gpuledger.events.mapping import PART, MappingRule
from gpuledger.events.workload import Submitted
from gpuledger.kernel.accounts import SEPARATOR, UNMAPPED_ROOT, check_path, escape_part, join, owner_of
from gpuledger.kernel.errors import Refused
from gpuledger.ledger.facts import Known, rank, winner

MAPPING = "mapping"
"""The policy that rules are versions of."""

DEFAULT_MINIMUM_RUNTIME_S = 3600
"""Minimum runtime of the built-in rule, for sources that have none."""

PATH_LIMIT = 1024
"""The longest path of an account; a rule that would make a longer one does not match."""


class Version(NamedTuple):
    """Rules that were set: from when, by which row of ``~org``, and in which order they are tried."""

    from_s: int
    org_seq: int
    rules: Sequence[MappingRule]


class Foreign(NamedTuple):
    """What a source says of a workload.

    Args:
        account: The account, as the source gave it.
        users: Tokens of the people it may belong to: several when sources contradict each other about nothing else.
        labels: Label and value, such as partition, qos, queue or namespace.
    """

    account: str
    users: frozenset[str] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()

    def under(self, account: str) -> "Foreign":
        """Return the same work under another account."""
        return self._replace(
            account=account, labels=tuple(pair for pair in self.labels if pair[0] != "account")
        )


class Matched(NamedTuple):
    """The rule that decided: the row of ``~org`` that set it, and its place from 1."""

    org_seq: int
    number: int


class Meaning(NamedTuple):
    """Who pays, and the terms of workloads that do not state their own.

    Args:
        account: The account that pays, for an inner node its own work: ``org``, never ``org/~own``.
        is_unallocated: Whether it runs unallocated whatever it asked for.
        minimum_runtime_s: The shortest occupancy that makes progress.
        resumable: Whether a run can go on where an earlier one was stopped.
        kind: train, debug, interactive or inference.
        matched: The rule that says so; None for the built-in one.
    """

    account: str
    is_unallocated: bool = False
    minimum_runtime_s: int = DEFAULT_MINIMUM_RUNTIME_S
    resumable: bool = True
    kind: str = "train"
    matched: Matched | None = None

    def minimum_s(self, asked_s: int | None) -> int:
        """Return the minimum runtime of a workload that asked for one, or for none; 0 runs unallocated."""
        if self.is_unallocated:
            return 0
        return self.minimum_runtime_s if asked_s is None else asked_s


class _Seen(NamedTuple):
    """A version as a cluster sees it: the rules that are about it, with their places."""

    org_seq: int
    rules: Sequence[tuple[int, MappingRule]]
    is_empty: bool
    """Whether it has no rule at all: then accounts stay as sources give them."""


class Rules:
    """Every version of the mapping, as one cluster reads it.

    A cluster that no rule is about keeps the accounts that its source gives.

    Args:
        versions: In any order; of one moment the last set is in force.
        cluster: The cluster, which is also the root of the accounts that importing gives.
    """

    __slots__ = ("_known", "_labels", "_moments", "_people", "_versions", "cluster")

    def __init__(self, versions: Iterable[Version] = (), cluster: str = "") -> None:
        as_set = sorted(versions, key=lambda version: version.org_seq)
        self.cluster = cluster
        self._versions = [_seen(version, cluster) for version in as_set]
        self._moments = sorted({version.from_s: place for place, version in enumerate(as_set)}.items())
        rules = [rule for version in self._versions for _, rule in version.rules]
        self._people = frozenset(name for rule in rules for name in rule.user)
        parts = (part for rule in rules for part in PART.findall(rule.to or ""))
        self._labels = {"account", *parts, *(label for rule in rules for label in rule.labels)}
        self._known: dict[tuple[int, Foreign], Meaning] = {}

    def __bool__(self) -> bool:
        """Tell whether any rule was ever about the cluster."""
        return any(version.rules for version in self._versions)

    def meaning(self, foreign: Foreign, at_s: int) -> Meaning:
        """Return what a workload means that was submitted at an instant."""
        if not self._versions:
            return Meaning(owner_of(foreign.account))
        begun = bisect_right(self._moments, at_s, key=lambda moment: moment[0])
        first = self._moments[begun - 1][1] if begun else 0
        # What no rule looks at makes no difference: names of jobs, say, would fill the memory.
        labels = tuple(pair for pair in foreign.labels if pair[0] in self._labels)
        key = first, Foreign(foreign.account, foreign.users & self._people, labels)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._decided(*key)
        return found

    def understood(self, submissions: Sequence[Known]) -> "Understood | None":
        """Return the submission that counts and what it means, or None when there is none."""
        counts = winner(submissions)
        if counts is None:
            return None
        asked = counts.data
        assert isinstance(asked, Submitted)  # noqa: S101 - the caller sorted facts by type
        if not self._versions:
            return Understood(counts.at_s, asked, Foreign(asked.account), Meaning(owner_of(asked.account)))
        users = {asked.user}
        if self._people and len(submissions) > 1:
            # Facts that say the same of different people are ranked by a digest under random keys.
            top = rank(counts)[:-1]
            users = {getattr(known.data, "user", "") for known in submissions if rank(known)[:-1] == top}
        foreign = Foreign(asked.account, frozenset(users), tuple(sorted((asked.labels or {}).items())))
        return Understood(counts.at_s, asked, foreign, self.meaning(foreign, counts.at_s))

    def _decided(self, first: int, foreign: Foreign) -> Meaning:
        # The version in force, and those that were set after it; one that is about other clusters says nothing.
        versions = [version for version in self._versions[first:] if version.rules or version.is_empty]
        if not versions or versions[0].is_empty or foreign.account.startswith(UNMAPPED_ROOT + SEPARATOR):
            return Meaning(owner_of(foreign.account))
        named = _Named.of(foreign, self.cluster)
        for version in versions:
            for number, rule in version.rules:
                account = named.under(rule, foreign)
                if account is not None:
                    return _terms(rule, owner_of(account), Matched(version.org_seq, number))
        return Meaning(join(UNMAPPED_ROOT, _as_path(named.account)))


class Understood(NamedTuple):
    """The submission of a workload that counts, and what it means.

    Args:
        at_s: When it was submitted.
        asked: What was asked for.
        foreign: What the source says of it.
        meaning: What that means here.
    """

    at_s: int
    asked: Submitted
    foreign: Foreign
    meaning: Meaning

    @property
    def minimum_runtime_s(self) -> int:
        """The minimum runtime that was asked for, or that the rule gives; 0 runs unallocated."""
        return self.meaning.minimum_s(self.asked.minimum_runtime_s)


AS_GIVEN = Rules()
"""No rules: accounts are those that the source gives, under the terms of the built-in rule."""


class _Named(NamedTuple):
    """The names that rules look at.

    Args:
        account: The account below the cluster's root, as ``usage`` shows it there.
        spellings: All ways in which a rule may name the account.
        parts: What stands for each ``{...}`` of an account's path, one or more parts of it.
    """

    account: str
    spellings: frozenset[str]
    labels: Mapping[str, str]
    parts: Mapping[str, str]

    @classmethod
    def of(cls, foreign: Foreign, cluster: str) -> Self:
        labels = dict(foreign.labels)
        account = foreign.account.removeprefix(cluster + SEPARATOR) or foreign.account
        spellings = frozenset({account, foreign.account, labels.get("account", account)})
        path = _as_path(account)
        numbered = {f"account.{n}": part for n, part in enumerate(path.split(SEPARATOR), 1)}
        values = {name: escape_part(value) for name, value in labels.items() if value}
        parts = {**values, **numbered, "account": path, "cluster": escape_part(cluster or UNMAPPED_ROOT)}
        return cls(account, spellings, labels, parts)

    def under(self, rule: MappingRule, foreign: Foreign) -> str | None:
        """Return the account under a rule, or None when the rule does not match."""
        if rule.account and not any(_matches(rule.account, name) for name in self.spellings):
            return None
        if rule.user and foreign.users.isdisjoint(rule.user):
            return None
        for label, values in rule.labels.items():
            if label not in self.labels or not _matches(values, self.labels[label]):
                return None
        if rule.to is None:
            return foreign.account
        try:
            path = PART.sub(lambda part: self.parts[part[1]], rule.to)
        except KeyError:
            return None
        return path if len(path) <= PATH_LIMIT else None


def _seen(version: Version, cluster: str) -> _Seen:
    about = [(n, r) for n, r in enumerate(version.rules, 1) if not r.cluster or _matches(r.cluster, cluster)]
    return _Seen(version.org_seq, about, is_empty=not version.rules)


def _terms(rule: MappingRule, account: str, matched: Matched) -> Meaning:
    minimum_s = DEFAULT_MINIMUM_RUNTIME_S if rule.minimum_runtime_s is None else rule.minimum_runtime_s
    is_unallocated = rule.klass == "unallocated"
    resumable = True if rule.resumable is None else rule.resumable
    return Meaning(account, is_unallocated, minimum_s, resumable, rule.kind or "train", matched)


def _as_path(account: str) -> str:
    """Return a foreign account as a path: what is one already stays as it is."""
    try:
        return check_path(account)
    except Refused:
        return join(*(escape_part(part) for part in account.split(SEPARATOR) if part)) or escape_part(account)


def _matches(globs: Iterable[str], name: str) -> bool:
    return any(_pattern(glob).match(name) for glob in globs)


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> "re.Pattern[str]":
    """Return a glob as a pattern; the translation of several ``*`` does not backtrack beyond them."""
    return re.compile(fnmatch.translate(glob))
