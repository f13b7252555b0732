"""Hardware failures and what they give back: one incident, and one credit for each run that it ended.

Whether an incident ended a run is a conclusion: of several about one run and incident that with the highest ``basis``
counts. A reversal is an order, and for good.
"""

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
    """What a run lost by an incident is given back: its newest charges, for the time since the last checkpoint.

    Args:
        incident: The incident; a run is credited for the first of several.
        cap_s: The most that is given back, in seconds of charged occupancy.
        basis: Which conclusion about the run and the incident it is; 0 is the first.
    """

    incident: Name
    cap_s: Count
    basis: Count = 0


class CreditWithdrawn(RunFact, frozen=True, kw_only=True, omit_defaults=True):
    """What is known now no longer says that the incident ended the run: the credit does not stand.

    Args:
        incident: The incident.
        basis: Which conclusion about the run and the incident it is.
    """

    incident: Name
    basis: Count


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
