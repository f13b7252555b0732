"""A ledger that only knows which facts it has, for a collector to fill."""

from collections.abc import Sequence

from gpuledger.events.envelope import Event
from gpuledger.events.heartbeat import Heartbeat
from gpuledger.ingest.dead_letters import DeadLetter
from gpuledger.ingest.intake import Taken
from gpuledger.kernel.errors import TooLarge, Unavailable


class Ledger:
    """Knows facts by their identity."""

    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], Event] = {}
        self.letters: list[DeadLetter] = []
        self.is_down = False
        self.too_large: str | None = None
        """The workload whose amounts it cannot hold."""

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        if self.is_down:
            raise Unavailable("the database is down")
        if any(
            getattr(event.data, "workload", None) == self.too_large for event, _ in events if self.too_large
        ):
            raise TooLarge("an amount is larger than the ledger can hold")
        taken = Taken()
        for event, _ in events:
            if self.facts.setdefault((event.source, event.id), event) is event:
                taken.accepted.add((event.source, event.id))
            else:
                assert self.facts[event.source, event.id].digest == event.digest  # one body under one id
                taken.repeated += 1
        self.letters += letters
        return taken

    def told(self) -> list[str]:
        return [event.name for event in self.facts.values() if not isinstance(event.data, Heartbeat)]
