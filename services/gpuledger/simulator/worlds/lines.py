"""Waiting jobs of one shape in their order, of which the first that is short enough is found without a search."""

from bisect import bisect_left

_NEVER = 1 << 62
"""Longer than any time limit."""


class Line:
    """Jobs by place, each with a length; places only grow.

    A tree of minima over the places answers which is the first that is not longer than so much, in the logarithm of
    their number.
    """

    def __init__(self) -> None:
        self._places: list[int] = []
        self._jobs: list[str] = []
        self._index: dict[int, int] = {}
        self._size = 1
        self._least = [_NEVER, _NEVER]

    def __bool__(self) -> bool:
        """Say whether anybody waits."""
        return bool(self._index)

    def join(self, place: int, job: str, length_s: int) -> None:
        """Put a job at the end.

        Args:
            place: Higher than any before.
            job: The job.
            length_s: How long it may take.
        """
        if len(self._places) == self._size:
            self._make_space()
        index = len(self._places)
        self._places.append(place)
        self._jobs.append(job)
        self._index[place] = index
        self._set(index, length_s)

    def leave(self, place: int) -> None:
        """Take whoever is at a place out."""
        self._set(self._index.pop(place), _NEVER)

    def first(self, from_place: int = 0, longest_s: int | None = None) -> tuple[int, str] | None:
        """Return the first place and job from a place on that is not longer than so much; None when there is none."""
        longest_s = _NEVER - 1 if longest_s is None else longest_s
        if self._least[1] > longest_s:
            return None
        index = self._find(bisect_left(self._places, from_place) if from_place else 0, longest_s)
        return None if index is None else (self._places[index], self._jobs[index])

    def _find(self, start: int, longest_s: int) -> int | None:
        least, node = self._least, start + self._size
        if start >= self._size:
            return None
        while least[node] > longest_s:
            while node & 1:  # a right child: what follows it is right of its parent
                node >>= 1
            if not node:
                return None
            node += 1
        while node < self._size:
            node <<= 1
            if least[node] > longest_s:
                node += 1
        return node - self._size

    def _set(self, index: int, length_s: int) -> None:
        least, node = self._least, index + self._size
        least[node] = length_s
        node >>= 1
        while node:
            left, right = least[2 * node], least[2 * node + 1]
            least[node] = min(right, left)
            node >>= 1

    def _make_space(self) -> None:
        """Forget who left, and have places for as many again as are there."""
        kept = list(self._index.items())
        lengths = [self._least[index + self._size] for _, index in kept]
        self._jobs = [self._jobs[index] for _, index in kept]
        self._places = [place for place, _ in kept]
        self._index = {place: index for index, place in enumerate(self._places)}
        self._size = 1
        while self._size < 2 * len(kept):
            self._size *= 2
        self._least = [_NEVER] * (2 * self._size)
        self._least[self._size : self._size + len(kept)] = lengths
        for node in range(self._size - 1, 0, -1):
            self._least[node] = min(self._least[2 * node], self._least[2 * node + 1])
