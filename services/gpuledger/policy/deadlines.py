"""By when promises of earlier cycles are due, and by when those are gone whom these cycles told to leave.

A promise is made of what is free and of what runs leave that were told so. Until its instant its GPUs may be used, if
those who are told to leave by then make them good; whoever leaves later does not.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

from gpuledger.policy.state import RunId


class Deadlines:
    """What is due on every host while a cycle decides."""

    def __init__(self) -> None:
        self._promised: dict[str, Counter[int]] = defaultdict(Counter)
        """By host: what is promised from an instant on."""
        self._gone_by: dict[RunId, int] = {}
        self._leaves: dict[str, dict[RunId, int]] = defaultdict(dict)
        """By host: what each run leaves that an earlier cycle told to."""

    def promise(self, host: str, due_s: int, milli: int) -> None:
        """Note that so much more is promised on a host from an instant on; less below 0."""
        self._promised[host][due_s] += milli

    def leaves_by(self, run: RunId, at_s: int, parts: Iterable[tuple[str, int]]) -> None:
        """Note by when a run is gone, and what it leaves on which host; the first note of a run counts."""
        if run not in self._gone_by:
            self._gone_by[run] = at_s
            for host, milli in parts:
                self._leaves[host][run] = milli

    def is_gone_by(self, run: RunId, at_s: int) -> bool:
        """Say whether an earlier cycle told a run to leave by then."""
        return run in self._gone_by and self._gone_by[run] <= at_s

    def left(
        self, host: str, free_milli: int, leaving: Collection[RunId], *, counting: RunId | None = None
    ) -> Iterator[int]:
        """Yield what is left on a host at each of its instants.

        Args:
            host: The host.
            free_milli: What is free there now.
            leaving: Who is going to leave, as things stand.
            counting: Instants alone by which this run was to be gone, for others do not count on it.
        """
        instants = self._promised.get(host)
        if instants is None:
            return
        for due_s in instants:
            if counting is None or self.is_gone_by(counting, due_s):
                gone_milli = sum(
                    milli
                    for run, milli in self._leaves[host].items()
                    if run in leaving and self._gone_by[run] <= due_s
                )
                promised_milli = sum(milli for at_s, milli in instants.items() if at_s <= due_s)
                yield free_milli + gone_milli - promised_milli
