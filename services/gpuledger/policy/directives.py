"""What the newest word of the policy orders, for schedulers that ask over HTTP: what to start, what leaves by when."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.events.workload import PreemptionAnnounced
from gpuledger.kernel.clock import instant, iso, seconds
from gpuledger.ledger import cycles, state, store
from gpuledger.ledger.as_of import Vector, seq_of
from gpuledger.ledger.knobs import read_config
from gpuledger.policy.orders import STALE_AFTER_S, Leaving, Orders
from gpuledger.policy.published import reservations_of
from gpuledger.policy.reading import read_running
from gpuledger.policy.state import ReservationKind, RunId


class Directives(NamedTuple):
    """The orders of a cycle, and of what amended it.

    Args:
        cursor: Stands for everything up to here: asked again with it, nothing comes until something newer is there.
        cycle: The id of the cycle, or of its newest amendment.
        at_s: The instant that it decided for.
        stale: Whether it is too old to start or stop anything: there are no orders then.
        starts: ``{workload, hosts, reason}``, in their order; hosts in milli-GPU, empty where none are known.
        preemptions: ``{workload, run, leave_by, ends, reason}``; ``leave_by`` is the instant at which the GPUs are
            expected back, as the run was told first, and it ``ends`` where it cannot go on later. What a reservation
            will take was announced before (``workload.preemption_announced``).
        protected: ``{workload, run, reason}`` of the runs that the cycle told to leave and that may not be stopped at
            this moment.
    """

    cursor: int
    cycle: str
    at_s: int
    stale: bool
    starts: list[dict[str, Any]]
    preemptions: list[dict[str, Any]]
    protected: list[dict[str, Any]]


def directives(
    reader: Reader,
    cluster: str,
    *,
    now_s: int,
    after: int | None = None,
    stale_after_s: int = STALE_AFTER_S,
    vector: Vector | None = None,
) -> Directives | None:
    """Return what the newest word on a cluster orders; None when there was none, or none after a cursor.

    Each cycle says everything anew: orders of an earlier one that it does not repeat are void. Amendments add starts,
    and say anew who has to leave.

    Args:
        reader: The ledger, in one snapshot.
        cluster: The cluster.
        now_s: The present; cycles of a later instant give no orders yet.
        after: The cursor of the orders that were taken last.
        stale_after_s: A cycle older than this orders nothing.
        vector: Book -> the row up to which it is read; now unless given.
    """
    seq = seq_of(vector, cluster)
    word = cycles.newest_word(reader, cluster, at_s=now_s, seq=seq)
    if word is None or word.newest.seq == after:
        return None
    record = word.record
    config = read_config(reader, cluster, now_s, org_seq=seq_of(vector, ORG_BOOK))
    # Decisions to wait lie elsewhere: these are few.
    named = sorted({decision["workload"] for decision in record.get("decisions", ())})
    read = Orders(
        record=record,
        cycle_at_s=word.newest.at_s,
        now_s=now_s,
        running={run.id: run for run in read_running(reader, cluster, now_s, config, only=named, seq=seq)},
        stale_after_s=stale_after_s,
        waiting={one.workload for one in state.pending(reader, cluster, now_s, only=named, seq=seq)},
    )
    leaving = read.leaving()
    going = [one for one in leaving if not one.spared]
    leave_by = _leave_by(reader, cluster, word, going, seq)
    ending = state.ending(reader, cluster, [one.id.workload for one in going], now_s, seq=seq)
    return Directives(
        cursor=word.newest.seq,
        cycle=word.newest.id,
        at_s=word.newest.at_s,
        stale=bool(read.stale),
        starts=[
            {"workload": one.workload, "reason": one.reason, "hosts": dict(one.hosts)}
            for one in read.starting()
        ],
        preemptions=_preemptions(going, leave_by, ending),
        protected=[{**_named(one.id), "reason": one.spared} for one in leaving if read.protected(one.id)],
    )


def _preemptions(
    going: list[Leaving], leave_by: Mapping[RunId, int], ending: AbstractSet[str]
) -> list[dict[str, Any]]:
    return [
        {
            **_named(one.id),
            "reason": one.reason,
            "leave_by": iso(instant(leave_by[one.id])),
            "ends": one.id.workload in ending,
        }
        for one in going
    ]


def _named(run: RunId) -> dict[str, str]:
    return {"workload": run.workload, "run": run.run}


def _leave_by(
    reader: Reader, cluster: str, word: cycles.Word, leaving: list[Leaving], seq: int | None
) -> dict[RunId, int]:
    """Return run -> when its GPUs are expected back: later cycles repeat the order, and do not put that off."""
    promised_s = _promised_s(word.record)
    announced_s = _announced_s(reader, cluster, [one.id for one in leaving if one.id not in promised_s], seq)
    # Where nobody was told, the cycle is of before runs were given notice.
    soonest_s = word.newest.at_s + int(word.issued.issued.config.get("grace_s", 0))
    return {one.id: promised_s.get(one.id, announced_s.get(one.id, soonest_s)) for one in leaving}


def _promised_s(record: Mapping[str, Any]) -> dict[RunId, int]:
    """Return run -> when its GPUs were promised for."""
    found: dict[RunId, int] = {}
    for kept in reservations_of(record):
        for run in kept.leaving if kept.kind is ReservationKind.PROMISE else ():
            found[run] = max(kept.at_s, found.get(run, kept.at_s))
    return found


def _announced_s(reader: Reader, cluster: str, runs: list[RunId], seq: int | None) -> dict[RunId, int]:
    """Return run -> by when it was told first to leave a host that is emptied, for nobody's sake."""
    found: dict[RunId, int] = {}
    for workload, known in store.facts_of(reader, cluster, sorted({run.workload for run in runs}), seq=seq):
        told = known.data
        if isinstance(told, PreemptionAnnounced) and told.asker is None and not told.foreseen:
            run, at_s = RunId(workload, told.run), seconds(told.leaves_at)
            found[run] = min(at_s, found.get(run, at_s))
    return found
