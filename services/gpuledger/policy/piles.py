"""The work of one account in its order, kept while some of it comes and goes. Pure.

It lies in chunks: who comes or goes changes one of them, and what is summed up along the work is made anew there and
over the chunks, when it is asked for. So a queue a hundred times as long costs little more.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, KeysView, Sequence
from itertools import accumulate, chain
from typing import Final, overload

from gpuledger.policy.lines import ASK, GPU_MS, GPUS_MILLI, Ask, Entry, oldest

CHUNK: Final = 256
"""So many lie in one chunk, up to twice as many until it is cut."""


class Pile(Sequence[Entry]):
    """Some work, next first.

    Args:
        entries: It, in its order.
    """

    __slots__ = ("_chunks", "_firsts", "_kinds", "_starts")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._fill(list(entries))

    def _fill(self, there: list[Entry]) -> None:
        self._chunks = [_Chunk(there[at : at + CHUNK]) for at in range(0, len(there), CHUNK)] or [_Chunk([])]
        self._firsts: list[Entry] | None = None
        self._starts: _Starts | None = None
        self._kinds: dict[Ask, list[Entry]] = {}
        for entry in there:
            self._kinds.setdefault(entry[ASK], []).append(entry)

    def __len__(self) -> int:
        """Return how much work there is."""
        return len(self._chunks[0].entries) if len(self._chunks) == 1 else self._along.places[-1]

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        """Return the work at a place, or that at some places."""
        if len(self._chunks) == 1:
            return self._chunks[0].entries[place]
        if isinstance(place, slice):
            return self.entries[place]
        if not 0 <= place < len(self):
            raise IndexError(place)
        chunk, at, _ = self._at(place)
        return chunk.entries[at]

    @property
    def entries(self) -> list[Entry]:
        """All of it. Only to be looked at."""
        if len(self._chunks) == 1:
            return self._chunks[0].entries
        return list(chain.from_iterable(chunk.entries for chunk in self._chunks))

    @property
    def kinds(self) -> KeysView[Ask]:
        """What is asked for."""
        return self._kinds.keys()

    def add(self, entries: Sequence[Entry]) -> None:
        """Let more work wait."""
        if len(entries) > CHUNK:
            self._fill(sorted(chain(self.entries, entries)))
            return
        for entry in entries:
            number = self._chunk_of(entry)
            chunk = self._chunks[number]
            insort(chunk.entries, entry)
            chunk.forget()
            if len(chunk.entries) > 2 * CHUNK:
                self._chunks[number : number + 1] = chunk.halves()
            insort(self._kinds.setdefault(entry[ASK], []), entry)
            self._firsts = self._starts = None

    def drop(self, entry: Entry) -> None:
        """Let some work wait no more."""
        number = self._chunk_of(entry)
        chunk = self._chunks[number]
        del chunk.entries[bisect_left(chunk.entries, entry)]
        chunk.forget()
        if not chunk.entries and len(self._chunks) > 1:
            del self._chunks[number]
        alike = self._kinds[entry[ASK]]
        del alike[bisect_left(alike, entry)]
        if not alike:
            del self._kinds[entry[ASK]]
        self._firsts = self._starts = None

    def place_of(self, entry: Entry) -> int:
        """Return how much work comes before some."""
        number = self._chunk_of(entry)
        before = self._along.places[number] if number else 0
        return before + bisect_left(self._chunks[number].entries, entry)

    def first_of(self, asks: Iterable[Ask], start: int) -> int | None:
        """Return the first place, from one on, of those who ask for one of these; None without any."""
        found: Entry | None = None
        if start >= len(self):
            return None
        after = self[start] if start else None
        for ask in asks:
            alike = self._kinds.get(ask)
            at = 0 if alike is None or after is None else bisect_left(alike, after)
            if alike is not None and at < len(alike) and (found is None or alike[at] < found):
                found = alike[at]
        return None if found is None else self.place_of(found)

    def held_before(self, place: int) -> int:
        """Return what those before a place are expected to hold, in gpu_ms."""
        chunk, at, number = self._at(place)
        return chunk.held_gpu_ms[at] + (self._along.held_gpu_ms[number] if number else 0)

    def milli_before(self, place: int) -> int:
        """Return the milli-GPU of those before a place."""
        chunk, at, number = self._at(place)
        return chunk.gpus_milli[at] + (self._along.gpus_milli[number] if number else 0)

    def oldest_from(self, place: int) -> int:
        """Return since when the oldest is eligible of the work at a place and behind it."""
        chunk, at, number = self._at(place)
        here_s = chunk.oldest_s[at]
        if number == len(self._chunks) - 1:
            return here_s
        return min(here_s, self._along.oldest_s[number + 1])

    @property
    def held_gpu_ms(self) -> list[int]:
        """What those before each are expected to hold, and all of them."""
        if len(self._chunks) == 1:
            return self._chunks[0].held_gpu_ms
        return list(accumulate([entry[GPU_MS] for entry in self.entries], initial=0))

    @property
    def gpus_milli(self) -> list[int]:
        """The milli-GPU of those before each, and of all of them."""
        if len(self._chunks) == 1:
            return self._chunks[0].gpus_milli
        return list(accumulate([entry[GPUS_MILLI] for entry in self.entries], initial=0))

    @property
    def oldest_s(self) -> list[int]:
        """Since when the oldest is eligible of each and those behind it."""
        return self._chunks[0].oldest_s if len(self._chunks) == 1 else oldest(self.entries)

    @property
    def asks(self) -> list[Ask]:
        """What each asks for."""
        return self._chunks[0].asks if len(self._chunks) == 1 else [entry[ASK] for entry in self.entries]

    @property
    def _along(self) -> "_Starts":
        if self._starts is None:
            self._starts = _Starts(self._chunks)
        return self._starts

    def _chunk_of(self, entry: Entry) -> int:
        """Return the chunk in which some work lies, or would."""
        if len(self._chunks) == 1:
            return 0
        if self._firsts is None:
            self._firsts = [chunk.entries[0] for chunk in self._chunks]
        return max(bisect_right(self._firsts, entry) - 1, 0)

    def _at(self, place: int) -> "tuple[_Chunk, int, int]":
        """Return the chunk of a place, the place there, and the chunk's number; behind all work is in the last one."""
        if len(self._chunks) == 1:
            return self._chunks[0], place, 0
        places = self._along.places
        number = min(bisect_right(places, place), len(self._chunks)) - 1
        return self._chunks[number], place - places[number], number


class _Chunk:
    """Some work, and what is summed up along it, until it changes."""

    __slots__ = ("_asks", "_gpus_milli", "_held_gpu_ms", "_oldest_s", "entries")

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.forget()

    def forget(self) -> None:
        """It has changed."""
        self._held_gpu_ms: list[int] | None = None
        self._gpus_milli: list[int] | None = None
        self._oldest_s: list[int] | None = None
        self._asks: list[Ask] | None = None

    def halves(self) -> "list[_Chunk]":
        """Return the same work in two chunks."""
        return [_Chunk(self.entries[:CHUNK]), _Chunk(self.entries[CHUNK:])]

    @property
    def held_gpu_ms(self) -> list[int]:
        """As that of a pile, as are the others."""
        if self._held_gpu_ms is None:
            self._held_gpu_ms = list(accumulate([entry[GPU_MS] for entry in self.entries], initial=0))
        return self._held_gpu_ms

    @property
    def gpus_milli(self) -> list[int]:
        if self._gpus_milli is None:
            self._gpus_milli = list(accumulate([entry[GPUS_MILLI] for entry in self.entries], initial=0))
        return self._gpus_milli

    @property
    def oldest_s(self) -> list[int]:
        if self._oldest_s is None:
            self._oldest_s = oldest(self.entries)
        return self._oldest_s

    @property
    def asks(self) -> list[Ask]:
        if self._asks is None:
            self._asks = [entry[ASK] for entry in self.entries]
        return self._asks


class _Starts:
    """What is before each chunk of several, and before the end; and since when the oldest is eligible from it on."""

    __slots__ = ("gpus_milli", "held_gpu_ms", "oldest_s", "places")

    def __init__(self, chunks: Sequence[_Chunk]) -> None:
        self.places = list(accumulate([len(chunk.entries) for chunk in chunks], initial=0))
        self.held_gpu_ms = list(accumulate([chunk.held_gpu_ms[-1] for chunk in chunks], initial=0))
        self.gpus_milli = list(accumulate([chunk.gpus_milli[-1] for chunk in chunks], initial=0))
        firsts = [chunk.oldest_s[0] for chunk in reversed(chunks)]
        self.oldest_s = list(accumulate(firsts, min))[::-1]
