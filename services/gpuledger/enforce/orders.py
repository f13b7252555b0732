"""Orders for schedulers that take them: empty this host, stop this run, start that workload on those hosts. Pure.

An order is about a state of the world and not about a step: the same order given again finds it done and is answered
so. Nobody has to remember what was given, and what got lost on the way is given again by the next cycle.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from gpuledger.enforce.facts import Facts


class Verb(StrEnum):
    """What is ordered."""

    DRAIN = "drain"
    RESUME = "resume"
    PREEMPT = "preempt"
    START = "start"


class Answer(StrEnum):
    """What a scheduler says to an order."""

    DONE = "done"
    ALREADY = "already"
    """It was so before: the order was given before, or the world came round by itself."""
    REFUSED = "refused"


class Order(NamedTuple):
    """One order.

    Args:
        cycle: The cycle that gives it.
        verb: What to do.
        subject: The workload, or the host.
        run: The run that has to leave; empty for other orders.
        hosts: Host -> milli-GPU on which a workload starts; empty where the scheduler is to choose.
        grace_s: How long a run may take to leave.
        reason: Why, in plain words.
    """

    cycle: str
    verb: Verb
    subject: str
    run: str = ""
    hosts: Mapping[str, int] = {}
    grace_s: int = 0
    reason: str = ""

    @property
    def key(self) -> tuple[Verb, str, str]:
        """What the order is about, whichever cycle gives it."""
        return self.verb, self.subject, self.run


class Acknowledgement(NamedTuple):
    """An order and what the scheduler said to it.

    Args:
        order: The order.
        answer: What became of it.
        reason: Why it was refused; else empty.
    """

    order: Order
    answer: Answer
    reason: str = ""


class Taker(Protocol):
    """A scheduler that takes orders."""

    def take(self, order: Order) -> Acknowledgement:
        """Carry an order out, once: an order that is carried out already is answered ``already``.

        Raises:
            Unavailable: When it cannot be reached; the order is given again by the next cycle.
        """
        ...


def orders(facts: Facts, *, grace_s: int) -> list[Order]:
    """Return what a cycle orders, in the order in which it is to be done: hosts, then who leaves, then who starts.

    A run that is protected at this moment is not told to leave, whatever the cycle said. A cycle that is too old stops
    and starts nothing.

    Args:
        facts: The cycle, and the ledger now.
        grace_s: How long a run may take to leave.
    """
    given = [
        Order(facts.cycle, Verb.DRAIN if is_draining else Verb.RESUME, host)
        for host, is_draining in sorted(facts.draining.items())
    ]
    given += [
        Order(facts.cycle, Verb.PREEMPT, one.id.workload, run=one.id.run, grace_s=grace_s, reason=one.reason)
        for one in facts.leaving()
        if not one.spared
    ]
    given += [
        Order(facts.cycle, Verb.START, one.workload, hosts=one.hosts, reason=one.reason)
        for one in facts.starting()
    ]
    return given


def deliver(given: Iterable[Order], taker: Taker) -> Sequence[Acknowledgement]:
    """Give the orders one after the other, each once however often it is listed.

    Raises:
        Unavailable: When the scheduler cannot be reached; those before were given.
    """
    return [taker.take(order) for order in {order.key: order for order in given}.values()]
