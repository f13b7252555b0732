"""What users of the old world learn: to ask for more, once they waited long or lost GPUs to somebody who did.

Nobody learns to ask for less. So in the long run everybody asks for the highest priority, and it means nothing.
"""

from collections import deque
from dataclasses import dataclass

from gpuledger.simulator.jobs import Job

LOW, MEDIUM, HIGH = 0, 1, 2


@dataclass(slots=True)
class _Wait:
    """A job that waits: since when at what it asks for now."""

    job: Job
    since_s: int
    priority: int


class Habits:
    """The least that each user asks for.

    Args:
        long_wait_s: Who waits for so long asks for more.
    """

    def __init__(self, long_wait_s: int) -> None:
        self._long_wait_s = long_wait_s
        self._least: dict[str, int] = {}
        self._waits: dict[str, _Wait] = {}
        self._of_user: dict[str, dict[str, None]] = {}
        self._in_order: deque[tuple[int, str]] = deque()

    def waits(self, job: Job, at_s: int) -> int:
        """Take note that a job waits from now on, and return the priority that it asks for."""
        stated = min(max(job.priority, LOW), HIGH)
        priority = max(stated, self._least.get(job.user, LOW))
        self._waits[job.job] = _Wait(job, at_s, priority)
        self._of_user.setdefault(job.user, {})[job.job] = None
        self._in_order.append((at_s, job.job))
        return priority

    def rests(self, job: str) -> None:
        """Take note that a job waits no more."""
        wait = self._waits.pop(job)
        del self._of_user[wait.job.user][job]

    def look(self, at_s: int) -> list[tuple[Job, int]]:
        """Take note of who has waited for long by now.

        Returns:
            What waits and asks for more from now on, and for what.
        """
        raised = []
        while self._in_order and self._in_order[0][0] + self._long_wait_s <= at_s:
            since_s, name = self._in_order.popleft()
            wait = self._waits.get(name)
            if wait is not None and wait.since_s == since_s:
                raised += self.learns(wait.job.user, wait.priority, at_s)
        return raised

    def learns(self, user: str, priority: int, at_s: int) -> list[tuple[Job, int]]:
        """Take note that a priority was not enough for a user.

        Returns:
            What of theirs waits and asks for more from now on, and for what.
        """
        if priority == HIGH or self._least.get(user, LOW) > priority:
            return []
        self._least[user] = priority + 1
        raised = []
        for name in self._of_user.get(user, ()):
            wait = self._waits[name]
            if wait.priority <= priority:
                wait.priority, wait.since_s = priority + 1, at_s
                self._in_order.append((at_s, name))
                raised.append((wait.job, wait.priority))
        return raised
