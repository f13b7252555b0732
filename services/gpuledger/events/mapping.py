"""One rule of a mapping: which foreign names it is about, and what they mean here."""

import re
from typing import Literal

import msgspec

from gpuledger.events.fields import Count, Name, User
from gpuledger.events.workload import WorkloadClass
from gpuledger.kernel.accounts import SEPARATOR, UNMAPPED_ROOT, check_path
from gpuledger.kernel.errors import Refused

PART = re.compile(r"\{([^{}]*)\}")
"""What stands in an account for a part of the foreign name, such as ``{qos}``."""

_ACCOUNT_PART = re.compile(r"account\.([1-9][0-9]?)")

Kind = Literal["train", "debug", "interactive", "inference"]


class MappingRule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a source says of a workload -> who pays, and under which terms it runs.

    Names are globs, of which one must match; each condition that is given must hold.

    Args:
        cluster: Clusters that the rule is about; all unless given.
        account: The account as the source gave it.
        user: People, in full and not as globs; the journal keeps tokens in their place.
        labels: Label -> values, such as partition, qos, queue or namespace.
        to: Path of the account that pays, ``{...}`` for parts of the foreign name; as the source gave it unless given.
        klass: ``unallocated`` runs free of charge and preemptible (key ``class``).
        minimum_runtime_s: For workloads that declare none; 3600 unless given, 0 means unallocated.
        resumable: For workloads that do not say; they can resume unless given.
        kind: For workloads that do not say; ``train`` unless given.
    """

    cluster: tuple[Name, ...] = ()
    account: tuple[Name, ...] = ()
    user: tuple[User, ...] = ()
    labels: dict[Name, tuple[Name, ...]] = {}
    to: Name | None = None
    klass: WorkloadClass | None = msgspec.field(default=None, name="class")
    minimum_runtime_s: Count | None = None
    resumable: bool | None = None
    kind: Kind | None = None


def check(rule: MappingRule) -> None:
    """Check what the type of a rule alone cannot.

    Raises:
        Refused: When its account cannot be a path, or its terms contradict each other; the message begins with the key.
    """
    if rule.klass == "unallocated" and rule.minimum_runtime_s:
        raise Refused("minimum_runtime_s: what runs unallocated has none", hint="leave it out, or the class")
    if rule.klass == "allocated" and rule.minimum_runtime_s == 0:
        raise Refused("minimum_runtime_s: 0 means unallocated", hint="leave it out, or the class")
    if globs := [name for name in rule.user if re.search(r"[*?\[]", name)]:
        raise Refused(f"user: {globs[0]!r} is no name", hint="name people in full: the journal keeps tokens")
    if rule.to is not None:
        _check_account(rule.to)


def _check_account(to: str) -> None:
    names = PART.findall(to)
    if "user" in names:
        raise Refused("account: {user} would make a name public", hint="write one rule for each person")
    if unknown := [
        n for n in names if not n or (n.startswith("account.") and not _ACCOUNT_PART.fullmatch(n))
    ]:
        raise Refused(
            f"account: {{{unknown[0]}}} stands for nothing",
            hint="use {account}, {account.1}, {cluster}, or the name of a label",
        )
    if to.split(SEPARATOR, maxsplit=1)[0] == UNMAPPED_ROOT:
        raise Refused(
            f"account: {UNMAPPED_ROOT} is where that goes which no rule matches", hint="name another root"
        )
    try:
        check_path(PART.sub("x", to))
    except Refused as error:
        raise Refused(f"account: {error.message}", hint=error.hint) from error
