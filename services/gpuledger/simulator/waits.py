"""How long jobs waited for their GPUs, counted by group, size and account."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.survival import Lengths

GROUPS = ("debug", "interactive", "medium", "large", "largest")
"""How waits are grouped, smallest asks first; ``all`` is all of them together."""


def size_of(gpus_milli: int) -> str:
    """Return the size that an ask is counted under: ``<1``, ``1``, ``2``, ``3-4``, ``5-8`` and so on, in GPUs."""
    if gpus_milli < GPU_MILLI:
        return "<1"
    most = 1
    while most * GPU_MILLI < gpus_milli:
        most *= 2
    least = most // 2 + 1
    return f"{least}-{most}" if least < most else str(most)


@dataclass(slots=True)
class Waits:
    """Waits of jobs that were submitted in the window that is measured, or waited when it began.

    Args:
        groups: By group.
        sizes: By size.
        accounts: By account.
        again: By group, the waits of jobs whose GPUs were taken: from then to their next start.
    """

    groups: dict[str, Lengths] = field(default_factory=lambda: defaultdict(Lengths))
    sizes: dict[str, Lengths] = field(default_factory=lambda: defaultdict(Lengths))
    accounts: dict[str, Lengths] = field(default_factory=lambda: defaultdict(Lengths))
    again: dict[str, Lengths] = field(default_factory=lambda: defaultdict(Lengths))

    def first(
        self, group: str, size: str, account: str, wait_s: int, *, started: bool, entered_s: int
    ) -> None:
        """A job got its GPUs for the first time, was given up, or still waits at the end.

        Args:
            group: Its group.
            size: Its size.
            account: Its account.
            wait_s: How long it waited.
            started: Whether it got them.
            entered_s: How long it had waited when the window began.
        """
        for lengths in (self.groups[group], self.sizes[size], self.accounts[account]):
            lengths.add(wait_s, ended=started, entered=entered_s)

    def by_group(self) -> dict[str, Lengths]:
        """Return the waits of each group, and of all."""
        return _with_all(self.groups)

    def again_by_group(self) -> dict[str, Lengths]:
        """Return the waits after a run left, of each group and of all."""
        return _with_all(self.again)

    def by_size(self) -> dict[str, Lengths]:
        """Return the waits of each size that there was, smallest first."""
        return dict(sorted(self.sizes.items(), key=lambda item: _order(item[0])))


def _with_all(groups: Mapping[str, Lengths]) -> dict[str, Lengths]:
    found = {group: groups.get(group, Lengths()) for group in GROUPS}
    return {**found, "all": Lengths.merged(found.values())}


def _order(size: str) -> int:
    return 0 if size == "<1" else int(size.partition("-")[0])


__all__ = ["GROUPS", "Waits", "size_of"]
