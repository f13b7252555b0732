"""Sums over the remembered past that are brought up to date by what changed, not made anew at each look.

Each is fed with changes in order of time, and asked with memories whose end never goes back. What is said is what
``policy.history`` says of the same amounts: whole numbers in the memory's units, to the last one.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice
from operator import mul
from typing import NamedTuple, Protocol

from gpuledger.policy.memory import BUCKET_S, Memory
from gpuledger.policy.state import PolicyConfig


class Past(Protocol):
    """An amount that holds until it changes, weighed over what is remembered."""

    def change(self, at_s: int, by: int) -> None:
        """Let the amount be another from an instant on."""
        ...

    def units(self, memory: Memory) -> int:
        """Return what it weighs, each second by the memory, up to the memory's end."""
        ...


def past_of(config: PolicyConfig) -> Callable[[], Past]:
    """Return what makes sums for the way in which a policy remembers."""
    return Window if config.mode == "window" else Fading


class _Piece(NamedTuple):
    from_s: int
    to_s: int
    amount: int


class Window:
    """The past of a window: every second in it weighs the same. A look costs what left it since the one before."""

    __slots__ = ("_amount", "_pieces", "_since_s", "_whole")

    def __init__(self) -> None:
        self._amount = 0
        self._since_s = 0
        self._pieces: deque[_Piece] = deque()
        self._whole = 0
        """All pieces together."""

    def change(self, at_s: int, by: int) -> None:
        """Let the amount be another from an instant on."""
        if self._amount and at_s > self._since_s:
            self._pieces.append(_Piece(self._since_s, at_s, self._amount))
            self._whole += self._amount * (at_s - self._since_s)
        self._amount += by
        self._since_s = at_s

    def units(self, memory: Memory) -> int:
        """Return the amount times seconds within the window."""
        start_s, pieces = memory.start_s, self._pieces
        while pieces and pieces[0].to_s <= start_s:
            from_s, to_s, amount = pieces.popleft()
            self._whole -= amount * (to_s - from_s)
        found = self._whole + self._amount * (memory.end_s - max(self._since_s, start_s))
        if pieces and pieces[0].from_s < start_s:
            found -= pieces[0].amount * (start_s - pieces[0].from_s)
        return found


class Fading:
    """The past under a half-life: all seconds of a quarter of an hour weigh the same, and less at each look.

    A look costs as much as there are quarters of an hour in the memory.
    """

    __slots__ = ("_amount", "_buckets", "_first", "_since_s")

    def __init__(self) -> None:
        self._amount = 0
        self._since_s = 0
        self._first = 0
        """The number of the first quarter of an hour that is kept."""
        self._buckets: deque[int] = deque()

    def change(self, at_s: int, by: int) -> None:
        """Let the amount be another from an instant on."""
        self._fill(at_s)
        self._amount += by

    def units(self, memory: Memory) -> int:
        """Return what the amount weighs."""
        self._fill(memory.end_s)
        first = memory.start_s // BUCKET_S
        while self._buckets and self._first < first:
            self._buckets.popleft()
            self._first += 1
        if not self._buckets:
            return 0
        return sum(map(mul, islice(memory.weights, self._first - first, None), self._buckets))

    def _fill(self, to_s: int) -> None:
        """Note the amount up to an instant."""
        if not self._buckets:
            if not self._amount:
                self._since_s = to_s
                return
            self._first = self._since_s // BUCKET_S
        while self._since_s < to_s:
            bucket = self._since_s // BUCKET_S
            end_s = min((bucket + 1) * BUCKET_S, to_s)
            if bucket - self._first == len(self._buckets):
                self._buckets.append(0)
            self._buckets[-1] += self._amount * (end_s - self._since_s)
            self._since_s = end_s


class _Given(NamedTuple):
    account: str
    gpus_milli: int
    from_s: int
    to_s: int


class Credits:
    """What accounts were given back, weighed over what is remembered; given in the order of its end."""

    def __init__(self) -> None:
        self._given: deque[_Given] = deque()

    def give(self, account: str, gpus_milli: int, from_s: int, to_s: int) -> None:
        """Give GPUs over ``[from_s, to_s)`` back."""
        if from_s < to_s:
            self._given.append(_Given(account, gpus_milli, from_s, to_s))

    def units(self, memory: Memory) -> dict[str, int]:
        """Return account -> what it was given back weighs."""
        given = self._given
        while given and given[0].to_s <= memory.start_s:
            given.popleft()
        found: dict[str, int] = {}
        for account, gpus_milli, from_s, to_s in given:
            found[account] = found.get(account, 0) + gpus_milli * memory.weight(from_s, to_s)
        return found


class Holds:
    """What is set aside by account: GPUs times what is left of the time for which they are protected."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, str, int]] = {}
        """Until when, whose and how many GPUs, by job."""
        self._ends: list[tuple[int, str]] = []
        self._milli: dict[str, int] = {}
        self._until: dict[str, int] = {}
        """By account, GPUs times the instant until which they are set aside."""

    def open(self, job: str, account: str, gpus_milli: int, until_s: int) -> None:
        """Set GPUs aside for the run of a job."""
        self._open[job] = until_s, account, gpus_milli
        self._count(account, gpus_milli, until_s)
        heappush(self._ends, (until_s, job))

    def release(self, job: str) -> None:
        """Set nothing aside for a job any more; one that has no hold is passed over."""
        held = self._open.pop(job, None)
        if held is not None:
            until_s, account, gpus_milli = held
            self._count(account, -gpus_milli, until_s)

    def at(self, at_s: int) -> dict[str, int]:
        """Return account -> gpu_ms that are set aside at an instant; accounts without any are absent."""
        while self._ends and self._ends[0][0] <= at_s:
            until_s, job = heappop(self._ends)
            if job in self._open and self._open[job][0] == until_s:
                self.release(job)
        return {
            account: self._until[account] - milli * at_s for account, milli in self._milli.items() if milli
        }

    def _count(self, account: str, gpus_milli: int, until_s: int) -> None:
        self._milli[account] = self._milli.get(account, 0) + gpus_milli
        self._until[account] = self._until.get(account, 0) + gpus_milli * until_s
