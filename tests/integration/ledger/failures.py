"""Hosts that break at ten o'clock, the runs that they end, and the orders that follow."""

from typing import Any

from tests.integration.ledger.books import CLUSTER, HOUR, Ledger, at, ended, started, submitted, told

from gpuledger.database.engine import reading, writing
from gpuledger.events import host
from gpuledger.events.envelope import Event
from gpuledger.ledger.faults import Incident
from gpuledger.ledger.incidents import Credited, Reversal, credit, find, reverse

TEN = at("2026-03-01T10:00:00Z")
INCIDENT = "h1@2026-03-01T10:00:00Z"
FROM_S, TO_S = TEN - HOUR, TEN + HOUR


def broken(at_s: int = TEN, name: str = "h1", **keys: Any) -> Event:  # noqa: ANN401
    """A host became unhealthy."""
    said = {"cluster": CLUSTER, "host": name, "gpus": 8, "gpu_model": "H100", "state": "unhealthy", **keys}
    return told(at_s, host.StateChanged(**{"reason": "xid-79", **said}))


def failed(
    name: str = "w1",
    run: str = "r1",
    *,
    from_s: int = TEN - HOUR,
    to_s: int = TEN + 30,
    reason: str = "failed",
    **keys: Any,  # noqa: ANN401
) -> list[Event]:
    """A run that ended otherwise than it was meant to."""
    return [
        told(from_s, submitted(name)),
        told(from_s, started(name, run, **keys)),
        told(to_s, ended(name, run, reason=reason)),
    ]


def found(ledger: Ledger, from_s: int = FROM_S, to_s: int = TO_S) -> list[Incident]:
    with reading(ledger.engine) as reader:
        return find(reader, CLUSTER, from_s, to_s)


def credited(ledger: Ledger, from_s: int = FROM_S, to_s: int = TO_S) -> Credited:
    with writing(ledger.engine) as writer:
        return credit(writer, CLUSTER, from_s=from_s, to_s=to_s, clock=ledger.clock, calendar=ledger.calendar)


def reversed_(ledger: Ledger, run: str | None = None, reason: str = "it was a false alarm") -> Reversal:
    with writing(ledger.engine) as writer:
        return reverse(
            writer,
            CLUSTER,
            INCIDENT,
            run=run,
            by="grace",
            reason=reason,
            clock=ledger.clock,
            calendar=ledger.calendar,
        )
