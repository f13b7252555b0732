"""What a workload asks for as time goes by: the submission that counts, and what was changed of it since. Pure.

An update says what is another from its moment on; the keys that it does not name stay as they were. Of updates of one
moment that say a key differently the higher ranked counts (law 3), key by key. What is dated before the submission
that counts is of no account, for a submission says anew all that is asked for; while no submission is known updates
wait for one. Foreign names mean what the rules of the submission's moment say (docs/decisions/0022, 0067).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from gpuledger.events.workload import Submitted, Updated
from gpuledger.kernel.clock import seconds
from gpuledger.ledger.facts import Known, winner
from gpuledger.ledger.mapping import AS_GIVEN, Foreign, Rules, Understood

LATEST_S = 2**62
"""After every instant."""

KEYS = tuple(name for name in Updated.__struct_fields__ if name not in {"cluster", "workload", "version"})
"""What an update can change."""


class Request(NamedTuple):
    """What is asked for from a moment on, up to the next.

    Args:
        from_s: From when on; the first is the submission, whenever anybody looks before it.
        understood: The submission as it stands then, and what it means; its moment stays that of the submission.
        account_s: When an update named the account last; None where none did.
        eligible_s: When it may start, where an update says so; None where the submission does.
        changed: The keys that are another than before; none for the submission.
    """

    from_s: int
    understood: Understood
    account_s: int | None = None
    eligible_s: int | None = None
    changed: tuple[str, ...] = ()


def requests_of(known: Iterable[Known], rules: Rules = AS_GIVEN) -> Sequence[Request]:
    """Return what a workload asked for as time went by, the submission first; nothing for one that nobody submitted.

    Args:
        known: Facts about it; of other types than submissions and updates nothing is read.
        rules: What foreign names mean.
    """
    submitted, updated = [], []
    for fact in known:
        if isinstance(fact.data, Submitted):
            submitted.append(fact)
        elif isinstance(fact.data, Updated):
            updated.append(fact)
    first = rules.understood(submitted)
    return () if first is None else requests(first, updated, rules)


def requests(first: Understood | None, updated: Sequence[Known], rules: Rules) -> Sequence[Request]:
    """Return the same from the submission that counts, as it is understood, and the updates."""
    if first is None:
        return ()
    found = [Request(first.at_s, first)]
    for at_s, said in _by_moment(updated, first.at_s):
        after = _after(found[-1], at_s, said, rules)
        if after.changed:
            found.append(after)
    return found


def asked_at(told: Sequence[Request], at_s: int) -> Understood | None:
    """Return what is asked for at an instant, or None when nobody submitted the workload."""
    for request in reversed(told):
        if request.from_s <= at_s:
            return request.understood
    return told[0].understood if told else None


def said_otherwise(updated: Sequence[Known]) -> Mapping[str, Known]:
    """Return key -> which of the updates of one moment counts for it; keys that none of them names are absent."""
    found = {}
    for key in KEYS:
        counts = winner([known for known in updated if getattr(known.data, key) is not None])
        if counts is not None:
            found[key] = counts
    return found


def _by_moment(updated: Sequence[Known], since_s: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield moment -> what is said at it, in order, from an instant on."""
    moments: dict[int, list[Known]] = {}
    for known in updated:
        if known.at_s >= since_s:
            moments.setdefault(known.at_s, []).append(known)
    for at_s, of in sorted(moments.items()):
        yield at_s, {key: getattr(known.data, key) for key, known in said_otherwise(of).items()}


def _after(before: Request, at_s: int, said: Mapping[str, Any], rules: Rules) -> Request:
    understood = before.understood
    was = understood.asked
    values = dict(said)
    labels = dict(was.labels or {})
    if "account" in said:
        labels.pop("account", None)  # it is another spelling of the account that it had
    labels |= said.get("labels", {})
    if "account" in said or "labels" in said:
        values["labels"] = labels or None
    asked = replace(was, **values)
    # An account is named, and a time to start is told, even where they are the same as before.
    changed = [key for key in KEYS if getattr(asked, key) != getattr(was, key)]
    changed += [key for key in ("account", "eligible_at") if key in said and key not in changed]
    if changed and ("account" in said or "labels" in said):
        foreign = Foreign(asked.account, understood.foreign.users, tuple(sorted(labels.items())))
        understood = understood._replace(foreign=foreign, meaning=rules.meaning(foreign, understood.at_s))
    return Request(
        at_s,
        understood._replace(asked=asked),
        at_s if "account" in said else before.account_s,
        seconds(asked.eligible_at) if "eligible_at" in said and asked.eligible_at else before.eligible_s,
        tuple(changed),
    )
