"""Claims that several pods share: at each moment one of them holds the devices, so that each GPU-second has one owner.

Who starts first holds them. When it is over, the one among the others that started first takes over; one that is heard
of late gets the time before that nobody has. So the devices are held once from the first start to the last end, in
whichever order the pods are heard of. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

PAST_MAX = 5_000
"""Pods that are over and are remembered, in case one of their states is repeated."""


class Given(NamedTuple):
    """What a claim was given.

    Args:
        key: The claim.
        gpus_milli: Its GPUs, in milli-GPU.
    """

    key: str
    gpus_milli: int


class Change(NamedTuple):
    """A pod holds so much from now on.

    Args:
        at_s: Since when, in seconds since the epoch.
        gpus_milli: What it holds, in milli-GPU.
    """

    at_s: int
    gpus_milli: int


class Sharer(msgspec.Struct):
    """A pod that started and is not known to be over.

    Args:
        own: What it is called.
        workload: Its workload.
        run: Its run.
        hosts: Where it is.
        since_s: When it started.
        gpus_milli: What it holds now; at first what it holds beside its claims.
        claims: The claims that it may hold.
        changes: What was told of it when it started.
    """

    own: str
    workload: str
    run: str
    hosts: list[str]
    since_s: int
    gpus_milli: int
    claims: list[str] = msgspec.field(default_factory=list)
    changes: list[Change] = msgspec.field(default_factory=list)


class Taken(NamedTuple):
    """What a pod holds since another one is over."""

    heir: Sharer
    change: Change


class _Held(msgspec.Struct):
    """A claim: who holds it since when, and when others held it."""

    gpus_milli: int
    holder: str | None = None
    since_s: int = 0
    spans: list[tuple[int, int]] = msgspec.field(default_factory=list)
    is_gone: bool = False

    def take(self, own: str, since_s: int, end_s: int | None) -> list[tuple[int, int | None]]:
        """Give a pod all of its time that nobody has; return it."""
        free = list(self._free(since_s, end_s))
        for from_s, to_s in free:
            if to_s is None:
                self.holder, self.since_s = own, from_s
            else:
                self._had(from_s, to_s)
        return free

    def leave(self, end_s: int) -> int:
        """Note that the holder is over; return since when nobody holds the claim."""
        until_s = max(end_s, self.since_s)
        self._had(self.since_s, until_s)
        return until_s

    def _had(self, from_s: int, to_s: int) -> None:
        """Note a time in which it was held; times that touch are one."""
        merged: list[tuple[int, int]] = []
        for start_s, stop_s in sorted((*self.spans, (from_s, to_s))):
            if merged and start_s <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(stop_s, merged[-1][1])
            else:
                merged.append((start_s, stop_s))
        self.spans = merged

    def _free(self, since_s: int, end_s: int | None) -> Iterator[tuple[int, int | None]]:
        now_s = since_s
        for from_s, to_s in self.spans:
            if to_s <= now_s:
                continue
            if end_s is not None and from_s >= end_s:
                break
            if from_s > now_s:
                yield now_s, from_s
            now_s = to_s
        if self.holder is not None:
            end_s = self.since_s if end_s is None else min(end_s, self.since_s)
        if end_s is None or now_s < end_s:
            yield now_s, end_s


class Kept(msgspec.Struct):
    """What must be known after a restart."""

    claims: dict[str, _Held] = msgspec.field(default_factory=dict)
    sharers: dict[str, Sharer] = msgspec.field(default_factory=dict)


class Shares:
    """Who holds which claims."""

    def __init__(self) -> None:
        self.kept = Kept()
        self._past: dict[str, Sharer] = {}

    def is_free(self, key: str, own: str) -> bool:
        """Say whether no other pod holds a claim now."""
        held = self.kept.claims.get(key)
        return held is None or held.holder in {None, own}

    def join(self, sharer: Sharer, given: Sequence[Given], end_s: int | None) -> list[Change]:
        """Return what a pod holds when it starts, and each change since, as far as it follows from others.

        Args:
            sharer: The pod.
            given: What its claims were given.
            end_s: When it ended, if that is known already.
        """
        known = self.kept.sharers.get(sharer.own) or self._past.get(sharer.own)
        if known is not None:
            return known.changes
        steps = {sharer.since_s: sharer.gpus_milli}
        for claim in given:
            held = self.kept.claims.setdefault(claim.key, _Held(claim.gpus_milli))
            for from_s, to_s in held.take(sharer.own, sharer.since_s, end_s):
                steps[from_s] = steps.get(from_s, 0) + held.gpus_milli
                if to_s is not None and to_s != end_s:
                    steps[to_s] = steps.get(to_s, 0) - held.gpus_milli
        sharer.claims = [claim.key for claim in given]
        total = 0
        for at_s, step in sorted(steps.items()):
            total += step
            if step or at_s == sharer.since_s:
                sharer.changes.append(Change(at_s, total))
        sharer.gpus_milli = total
        if given:
            self.kept.sharers[sharer.own] = sharer
        return sharer.changes

    def leave(self, own: str, end_s: int | None) -> list[Taken]:
        """Note that a pod is over; return who holds more because of that.

        Args:
            own: The pod.
            end_s: Since when; None when nobody knows: then nobody takes over what its run may hold still.
        """
        sharer = self.kept.sharers.pop(own, None)
        if sharer is None:
            return []
        self._past[own] = sharer
        if len(self._past) > PAST_MAX:
            del self._past[next(iter(self._past))]
        gains: dict[tuple[int, str], int] = {}
        for key in sharer.claims:
            held = self.kept.claims[key]
            if held.holder == own:
                held.holder = None
                heir = self._heir(key)
                until_s = None if end_s is None else held.leave(end_s)
                if heir is not None and until_s is not None:
                    held.holder, held.since_s = heir.own, max(until_s, heir.since_s)
                    at = held.since_s, heir.own
                    gains[at] = gains.get(at, 0) + held.gpus_milli
            self._forget(key)
        return [self._grown(heir, at_s, gained) for (at_s, heir), gained in sorted(gains.items())]

    def gone(self, key: str) -> None:
        """Note that a claim is no more: it is forgotten with the last pod that names it."""
        if key in self.kept.claims:
            self.kept.claims[key].is_gone = True
            self._forget(key)

    def _heir(self, key: str) -> Sharer | None:
        others = [sharer for sharer in self.kept.sharers.values() if key in sharer.claims]
        return min(others, key=lambda sharer: (sharer.since_s, sharer.own), default=None)

    def _grown(self, own: str, at_s: int, gained: int) -> Taken:
        heir = self.kept.sharers[own]
        heir.gpus_milli += gained
        return Taken(heir, Change(at_s, heir.gpus_milli))

    def _forget(self, key: str) -> None:
        if self.kept.claims[key].is_gone and self._heir(key) is None:
            del self.kept.claims[key]
