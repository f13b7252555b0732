"""Hosts that are emptied for a repair: how long that takes, and whether somebody had to ask a user."""

from dataclasses import dataclass, field

from gpuledger.kernel.survival import Lengths
from gpuledger.simulator.facts import HostChanged, HostCondition


@dataclass(slots=True)
class _Drain:
    since_s: int
    counted: bool
    asked: bool = False
    empty: bool = False


@dataclass(slots=True)
class Drains:
    """Drains that began in the window that is measured.

    Args:
        from_s: When that begins.
        begun: How many there were.
        asked: For how many of them somebody had to ask a user, once or more often.
        hands: For how many of them the repair needs hands at the machine; None where nobody knows.
        lengths: How long they took until the host was empty; those that were called off, cut short by a fault or still
            go on took at least so long.
    """

    from_s: int
    begun: int = 0
    asked: int = 0
    hands: int | None = 0
    lengths: Lengths = field(default_factory=Lengths)
    _open: dict[str, _Drain] = field(default_factory=dict)

    def change(self, fact: HostChanged, *, hands: bool | None = False) -> None:
        """A host is in another condition.

        Args:
            fact: Which.
            hands: Whether the repair needs hands, where it is to be emptied for one; None where nobody knows.
        """
        drain = self._open.get(fact.host)
        if fact.condition is HostCondition.DRAINING:
            if drain is None:
                counted = fact.at_s >= self.from_s
                self._open[fact.host] = _Drain(fact.at_s, counted)
                self.begun += counted
                if counted:
                    self.hands = None if hands is None or self.hands is None else self.hands + hands
        elif drain is not None:
            # A host that goes down for the repair it was drained for is empty; told so before its emptiness was seen.
            self._end(drain, fact.at_s, empty=fact.condition is HostCondition.DOWN and fact.planned)
            del self._open[fact.host]

    def ask(self, host: str) -> None:
        """Somebody had to ask a user of a host to give up GPUs."""
        drain = self._open.get(host)
        if drain is not None and not drain.asked:
            drain.asked = True
            self.asked += drain.counted

    def emptied(self, at_s: int, host: str) -> None:
        """Nothing runs on a host any more."""
        drain = self._open.get(host)
        if drain is not None:
            self._end(drain, at_s, empty=True)

    @property
    def open(self) -> tuple[str, ...]:
        """The hosts that are being emptied and not empty yet."""
        return tuple(host for host, drain in self._open.items() if not drain.empty)

    def close(self, to_s: int) -> None:
        """The window ends."""
        for drain in self._open.values():
            self._end(drain, to_s, empty=False)

    def _end(self, drain: _Drain, at_s: int, *, empty: bool) -> None:
        if drain.counted and not drain.empty:
            (self.lengths.ended if empty else self.lengths.unended)[at_s - drain.since_s] += 1
        drain.empty = True


__all__ = ["Drains"]
