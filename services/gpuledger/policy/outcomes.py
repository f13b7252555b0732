"""What becomes of a waiting workload or of a run, and why: the decisions of a cycle as values. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from gpuledger.policy.fair_share import Turn
from gpuledger.policy.lines import NAME, Entry, Queue
from gpuledger.policy.outlook import Outlook
from gpuledger.policy.placement import Placement
from gpuledger.policy.state import WorkClass


class Action(StrEnum):
    """What a decision orders."""

    START = "start"
    WAIT = "wait"
    PREEMPT = "preempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to one waiting workload or to one run, and why.

    Args:
        workload: The workload.
        action: What to do.
        reason: One plain sentence or two, with names and numbers.
        numbers: The figures behind the reason, units in their names.
        placement: Where it starts; empty when the hosts of the cluster are not known.
        run: The run that has to leave.
        klass: As what it starts.
    """

    workload: str
    action: Action
    reason: str
    numbers: dict[str, int]
    placement: Placement | None = None
    run: str | None = None
    klass: WorkClass | None = None

    def told(self) -> tuple[str, dict[str, int]]:
        """Return sentence and figures at once."""
        return self.reason, self.numbers


class Shared:
    """The decision of a workload that waits for what others wait for, too, as most of a long queue do.

    It says what a ``Decision`` says, and equals one that says the same. Sentence and figures are made when they are
    read, of values that no longer change.

    Args:
        entry: The workload and what it asks for.
        line: The queue of its class.
        place: Where that has it.
        before: How many are before the whole queue of its class.
        outlook: What it waits for.
    """

    __slots__ = ("_before", "_entry", "line", "outlook", "place")

    action = Action.WAIT
    placement = None
    run = None
    klass = None

    def __init__(self, entry: Entry, line: Queue, place: int, before: int, outlook: Outlook) -> None:
        self._entry = entry
        self.line = line
        self.place = place
        self._before = before
        self.outlook = outlook

    @property
    def workload(self) -> str:
        """The workload."""
        return self._entry[NAME]

    @property
    def position(self) -> int:
        """Its place in the order, from 1."""
        return self._before + self.line.rank_of(self.place) + 1

    @property
    def reason(self) -> str:
        """One plain sentence or two, with names and numbers."""
        return self.told()[0]

    @property
    def numbers(self) -> dict[str, int]:
        """The figures behind the reason, units in their names."""
        return self.told()[1]

    def told(self) -> tuple[str, dict[str, int]]:
        """Return sentence and figures at once."""
        turn = Turn(self._entry, self.line, self.place, self._before)
        return self.outlook.told(self.outlook.own(turn))

    def said(self) -> Decision:
        """Return the same as a value."""
        reason, numbers = self.told()
        return Decision(workload=self.workload, action=self.action, reason=reason, numbers=numbers)

    def __eq__(self, other: object) -> bool:
        """Say whether both say the same."""
        mine = self.said()
        return mine == (other.said() if isinstance(other, Shared) else other)

    def __hash__(self) -> int:
        """Return the digest of what it is about."""
        return hash((self.workload, self.action))

    def __repr__(self) -> str:
        """Show what is said."""
        return repr(self.said())
