"""Answers about one workload from the ledger: its story, why it waits, and what would let it start.

The story and the recorded decision are a few indexed reads, whatever the length of the queue. What would have to be
otherwise is found by running cycles on changed states, so that it is asked for apart.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.amounts import WEIGHT_ONE
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import cycles, queries
from gpuledger.ledger import story as rows
from gpuledger.ledger.as_of import Vector, seq_of, vector_of
from gpuledger.ledger.knobs import read_config
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.policy.affording import unpaid_for
from gpuledger.policy.counterfactual import Counterfactual, Obstacle, counterfactuals
from gpuledger.policy.forecast import forecast
from gpuledger.policy.forgetting import Burst, Stretch, bursts, forgotten_by_s
from gpuledger.policy.outcomes import Action
from gpuledger.policy.quotes import Certainty
from gpuledger.policy.reading import read_asked, read_cadence, read_state
from gpuledger.policy.recorded import decision_of
from gpuledger.policy.state import ClusterState, PolicyConfig
from gpuledger.policy.story import State, Story, Told, preempted_runs, tell
from gpuledger.policy.waiting import Decided, chain_of, date_of
from gpuledger.policy.words import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing without which the workload starts now, and when it may be expected to go away.

    Args:
        found: What is in the way.
        expected_s: When it goes away, as far as that is known.
        certainty: What the date rests on; None without one.
        bursts: What the account used in the window, and when each part is forgotten (of use only).
    """

    found: Counterfactual
    expected_s: int | None = None
    certainty: Certainty | None = None
    bursts: tuple[Burst, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the change under its published keys."""
        found = self.found
        return {
            "obstacle": found.obstacle.value,
            "outcome": found.outcome.value,
            "when_eligible": found.eligible,
            "runs": [{"workload": run.workload, "run": run.run} for run in found.runs],
            "workloads": list(found.workloads),
            "account": found.account,
            "gpu_ms": found.gpu_ms,
            "gpus_milli": found.gpus_milli,
            "hosts": found.hosts,
            "gpu_model": found.gpu_model,
            "expected": None if self.expected_s is None else moment(self.expected_s),
            "certainty": self.certainty and self.certainty.value,
            "bursts": [
                {
                    "from": moment(b.from_s),
                    "to": moment(b.to_s),
                    "gpu_ms": b.gpu_ms,
                    "forgotten_from": moment(b.forgotten_from_s),
                    "forgotten_by": moment(b.forgotten_by_s),
                }
                for b in self.bursts
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What would let the workload start now, and when it starts if nobody does anything.

    Args:
        changes: Each alone does.
        left_out: The kinds of obstacle that a queue of this length left no time to look for to the end.
        starts_at_s: When it would start; None when the cycles looked at do not start it.
        seen_until_s: Up to when cycles were looked at.
    """

    changes: tuple[Change, ...]
    starts_at_s: int | None
    seen_until_s: int
    left_out: tuple[Obstacle, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "starts_now_without": [change.as_json() for change in self.changes],
            "left_out": [kind.value for kind in self.left_out],
            "expected": None if self.starts_at_s is None else moment(self.starts_at_s),
            "certainty": None if self.starts_at_s is None else Certainty.ESTIMATE.value,
            "looked_until": moment(self.seen_until_s),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The answer.

    Args:
        story: What happened.
        decided: What the cycle in force decided for it; None where none did.
        ahead: What would let it start; None unless asked for, or when it does not wait.
        unpaid: Why its hard account cannot pay for it now, so that it would run unallocated; None where it can, and for
            what does not wait or asks for no protection.
    """

    story: Story
    decided: Decided | None = None
    ahead: Ahead | None = None
    unpaid: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the answer under its published keys."""
        return {
            **self.story.as_json(),
            "decision": None if self.decided is None else self.decided.as_json(),
            "ahead": None if self.ahead is None else self.ahead.as_json(),
            "unpaid": self.unpaid,
        }


def why(
    reader: Reader,
    workload: str,
    *,
    cluster: str | None,
    at_s: int,
    as_of: dt.datetime | None = None,
    what_if: bool = False,
) -> Why:
    """Return a workload's story at an instant and, while it waits, why it does.

    Args:
        reader: A snapshot.
        workload: The workload.
        cluster: Where; may be left out where one cluster alone knows it.
        at_s: The instant: facts and cycles of later ones do not count.
        as_of: Recorded time: what the books said then; now unless given.
        what_if: Whether to look for what would let it start, by running cycles on changed states.

    Raises:
        NotFound: When nobody knows it; near names are named.
        Refused: When several clusters know it and none was named.
    """
    vector = vector_of(reader, as_of)
    found = rows.facts_of(reader, workload, cluster, at_s, vector=vector)
    if len(found) > 1:
        names = ", ".join(facts.cluster for facts in found)
        raise Refused(f"workload {workload!r} is known on {names}", hint="name one: --cluster")
    facts = found[0]
    book, seq = facts.cluster, seq_of(vector, facts.cluster)
    config = read_config(reader, book, at_s, org_seq=seq_of(vector, ORG_BOOK))
    told = Told(
        facts.known,
        facts.rules,
        queries.ticks(reader, as_of).get(book),
        _preempted_for(reader, book, workload, preempted_runs(facts.known), seq),
        rows.restores(reader, facts.known, book, workload),
    )
    story = tell(book, workload, at_s, told, config)
    if story.state is State.OVER:
        return Why(story=story)
    decided = _decided(reader, story, config, seq)
    waits = story.state in (State.WAITS, State.NOT_ELIGIBLE)
    ahead = _ahead(reader, story, config, vector) if waits and what_if else None
    unpaid = unpaid_for(reader, book, workload, at_s, config, vector=vector) if waits else None
    return Why(story=story, decided=decided, ahead=ahead, unpaid=unpaid)


def _preempted_for(
    reader: Reader, cluster: str, workload: str, stops: Iterable[tuple[str, int]], seq: int | None
) -> Mapping[str, str]:
    """Return run -> why a recorded cycle told it to leave."""
    reasons = {}
    for run, at_s in stops:
        # The cycle that comes at the very instant knows that the run is gone already.
        for by_s in (at_s, at_s - 1):
            found = cycles.newest_word(reader, cluster, at_s=by_s, seq=seq)
            # Orders stay in the record; only decisions to wait are kept for a while.
            orders = [] if found is None else found.said()
            because = [
                order["reason"]
                for order in orders
                if order["workload"] == workload
                and order["action"] == Action.PREEMPT
                and order.get("run") == run
            ]
            if because:
                reasons[run] = because[0]
                break
    return reasons


def _decided(reader: Reader, story: Story, config: PolicyConfig, seq: int | None) -> Decided | None:
    try:
        recorded = decision_of(reader, story.cluster, story.workload, story.at_s, seq=seq)
    except Refused as error:  # decided long ago, under a state that cannot be read any more: the story stands
        return Decided(cycle="", at_s=story.at_s, action="unknown", reason=f"{error.message}.", numbers={})
    if recorded is None:
        return None
    decision = recorded.decision
    context = rows.context(reader, story.cluster, story.at_s, seq=seq)
    allocations = context.allocations if context else []
    reservations = context.reservations if context else []
    cadence = read_cadence(reader, story.cluster, story.at_s, seq=seq)
    date = date_of(story.workload, reservations, cadence, story.at_s, config)
    return Decided(
        cycle=recorded.cycle,
        at_s=recorded.at_s,
        action=decision["action"],
        reason=decision["reason"],
        numbers=decision["numbers"],
        chain=chain_of(story.account, allocations),
        starts_by_s=date,
        certainty=None if date is None else Certainty.BOUND,
        every_s=cadence.every_s,
        doubts=() if date is None else cadence.doubts(story.at_s),
    )


def _ahead(reader: Reader, story: Story, config: PolicyConfig, vector: Vector | None) -> Ahead | None:
    state = read_state(reader, story.cluster, story.at_s, config, vector=vector)
    if all(work.workload != story.workload for work in state.pending):
        return None
    limits = rows.declared_limits(reader, story.cluster, story.at_s, seq=seq_of(vector, story.cluster))
    found = counterfactuals(state, config, story.workload)
    asked = read_asked(reader, state, config, vector=vector)
    coming = forecast(state, config, story.workload, limits_s=limits, asked=asked)

    def used_by(account: str) -> list[Stretch]:
        return list(_used(reader, state, config, account, vector))

    changes = tuple(_dated(used_by, state, config, story.workload, one) for one in found.changes)
    return Ahead(
        changes=changes,
        starts_at_s=coming.starts_at_s,
        seen_until_s=coming.seen_until_s,
        left_out=found.left_out,
    )


def _dated(
    used_by: Callable[[str], list[Stretch]],
    state: ClusterState,
    config: PolicyConfig,
    workload: str,
    found: Counterfactual,
) -> Change:
    """Say when an obstacle may be expected to go away."""
    if found.obstacle is Obstacle.ELIGIBILITY:
        eligible_s = next(work.eligible_at_s for work in state.pending if work.workload == workload)
        return Change(found=found, expected_s=eligible_s, certainty=Certainty.ESTIMATE)
    if found.obstacle is Obstacle.RUNS:
        # From then on others may take the GPUs; whether the run ends is its own affair.
        gone = set(found.runs)
        last_s = max(run.safe_until_s(config.quantum_s) for run in state.running if run.id in gone)
        return Change(found=found, expected_s=max(last_s, state.at_s), certainty=Certainty.ESTIMATE)
    if found.obstacle is Obstacle.USE and found.account is not None and config.mode == "window":
        used = used_by(found.account)
        expected_s = forgotten_by_s(used, config.window_s, found.gpu_ms * WEIGHT_ONE)
        return Change(
            found=found,
            expected_s=expected_s,
            certainty=None if expected_s is None else Certainty.ESTIMATE,
            bursts=tuple(b._replace(gpu_ms=b.gpu_ms // WEIGHT_ONE) for b in bursts(used, config.window_s)),
        )
    return Change(found=found)


def _used(
    reader: Reader, state: ClusterState, config: PolicyConfig, account: str, vector: Vector | None
) -> Iterator[Stretch]:
    """Yield what an account used in the window as the policy counts it, each GPU times its weight in per mille."""
    clusters = queries.clusters(reader) if config.scope == "clusters" else [state.cluster]
    rates = queries.rate_card(reader, seq_of(vector, ORG_BOOK)) if config.unit == "weighted" else UNWEIGHTED
    for cluster in clusters:
        span = (state.at_s - config.window_s, state.at_s)
        found = rows.window_use(reader, cluster, account, span, seq=seq_of(vector, cluster))
        for from_s, to_s, gpus_milli, model in found:
            for begin_s, end_s, weight in rates.pieces(model, from_s, to_s):
                yield Stretch(begin_s, end_s, gpus_milli * weight)
