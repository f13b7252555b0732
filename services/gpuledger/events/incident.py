"""Hardware failures and what they give back: one incident, and one credit for each run that it ended."""

import msgspec

from gpuledger.events.fields import Composed, Count, Label, Name, Person, Typed
from gpuledger.events.workload import RunFact

CREDIT_CAP_S = 4 * 3600
"""The most work that one failure is taken to have lost, 4 h (DESIGN section 7)."""


class IncidentFound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A host or GPU failed; the event's time is when the fault was noticed.

    Args:
        cluster: The cluster, which is also the book.
        incident: The incident's id within the cluster.
        host: Where.
        fault: What, as a short code such as ``unhealthy`` or ``xid-79``.
        gpu_uuids: The devices, when it was not the whole host.
        runs: The runs that it ended, as ``workload/run``, siblings included.
    """

    cluster: Name
    incident: Name
    host: Name
    fault: Composed
    gpu_uuids: list[Label] | None = None
    runs: list[Label]


class CreditGranted(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """What a run lost by an incident is given back: its charges since the last checkpoint, at most ``cap_s`` of them.

    Args:
        incident: The incident; a run is credited for the first of several.
        cap_s: The most that is given back, in seconds of occupancy before the run's end.
    """

    incident: Name
    cap_s: Count


class CreditReversed(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """The run's credit for an incident is taken back for good.

    Args:
        incident: The incident.
        reason: Why.
        by: Who ordered it.
    """

    incident: Name
    reason: Typed
    by: Person
