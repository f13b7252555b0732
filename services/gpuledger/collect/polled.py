"""What differs between a file that is imported once and an answer that is asked for again and again."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

from gpuledger.events.envelope import Event
from gpuledger.events.host import StateChanged
from gpuledger.events.workload import WorkloadFact
from gpuledger.ingest.dead_letters import DeadLetter
from gpuledger.ingest.importer import Sink
from gpuledger.ingest.intake import Taken

REMEMBERED_MAX = 100_000
"""Faults that are remembered; a scheduler with more is told of them twice."""

_VOLATILE = re.compile(rb'("elapsed"\s*:\s*)(?:\d+|\{[^{}]*\})')
"""What changes in the record of a running job although nothing has happened to it."""


class PolledSink:
    """Passes events on; a faulty record that is in every answer becomes one dead letter, not one for each.

    The place of a record in an answer says nothing about it, so it is no part of the letter's identity; and
    what merely counts seconds is no news.

    So is the state of a host that is as it was: a picture is dated when it is taken, and every picture would be
    another fact.

    Args:
        inner: Where everything goes.
    """

    def __init__(self, inner: Sink) -> None:
        self._inner, self.intake = inner, inner.intake
        self._told: dict[bytes, None] = {}
        self._states: dict[str, tuple[str | None, str | None]] = {}
        self.workloads: set[str] = set()
        """The workloads that any event was about since ``begin``."""

    def begin(self) -> None:
        """Begin another look."""
        self.workloads.clear()

    def take(self, events: Sequence[tuple[Event, bytes]], letters: Sequence[DeadLetter]) -> Taken:
        """Accept a batch; say which events were new. One that was not taken may come again, as news."""
        self.workloads.update(
            event.data.workload for event, _ in events if isinstance(event.data, WorkloadFact)
        )
        before = self._told.copy(), self._states.copy()
        fresh = [replace(letter, position=0) for letter in letters if self._is_new(letter)]
        try:
            return self._inner.take([pair for pair in events if self._is_news(pair[0])], fresh)
        except BaseException:
            self._told, self._states = before
            raise

    def _is_news(self, event: Event) -> bool:
        fact = event.data
        if not isinstance(fact, StateChanged):
            return True
        before = self._states.get(fact.host)
        self._states[fact.host] = now = (fact.state, fact.reason)
        return before != now

    def _is_new(self, letter: DeadLetter) -> bool:
        mark = hashlib.sha256(_VOLATILE.sub(rb"\1", letter.raw)).digest()
        if mark in self._told:
            return False
        if len(self._told) >= REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        self._told[mark] = None
        return True
