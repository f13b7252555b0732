"""What happens to every waiting workload, and which runs have to leave: one walk through the turns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.policy import explain
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.placement import Placement
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.reservations import Reservations
from gpuledger.policy.state import ClusterState, PolicyConfig, Reservation, ReservationKind, RunningRun
from gpuledger.policy.yard import SizeClass, Yard

_STARTED = ""
"""The run of a start has no id yet."""


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
    """

    workload: str
    action: Action
    reason: str
    numbers: Mapping[str, int]
    placement: Placement | None = None
    run: str | None = None


class Walk:
    """One pass through the turns: what fits starts; the first of a size class that does not looks for victims.

    Args:
        turns: The order.
        state: The cluster.
        yard: Its hosts.
        preemption: The search for victims.
        config: The knobs.
    """

    def __init__(
        self,
        turns: Iterable[Turn],
        state: ClusterState,
        yard: Yard,
        preemption: Preemption,
        config: PolicyConfig,
    ) -> None:
        self._turns = {turn.workload.workload: turn for turn in turns}
        self._at_s = state.at_s
        self._knows_hosts = bool(state.hosts)
        self._yard = yard
        self._preemption = preemption
        self._config = config
        self._book = Reservations(state, self._turns, yard, preemption, config)
        self._heads: dict[SizeClass, Turn] = {}
        self._missing: dict[str, int] = {}

    def decide(self) -> Iterator[Decision]:
        """Yield the decision of every turn, in order, then the runs that have to leave, by id."""
        for turn in self._turns.values():
            yield self._decide(turn)
        self._book.close()
        for _, victim in sorted(self._book.victims.items()):
            run = victim.run
            numbers = {"gpus_milli": run.gpus_milli, "lost_gpu_ms": run.lost_gpu_ms(self._at_s)}
            numbers |= explain.figures(victim)
            yield Decision(
                workload=run.workload,
                action=Action.PREEMPT,
                reason=explain.leaves(victim),
                numbers=numbers,
                run=run.run,
            )

    def reservations(self) -> tuple[Reservation, ...]:
        """Return what is reserved when every turn is decided, by workload."""
        return tuple(self._book.kept[workload] for workload in sorted(self._book.kept))

    def _decide(self, turn: Turn) -> Decision:
        gang = turn.workload
        held = self._book.release(gang.workload)
        safe_until_s = self._safe_until_s(turn)
        placement = self._yard.fit_now(gang.gpus_milli, gang.gpu_model, safe_until_s)
        numbers = self._numbers(turn)
        if placement is not None:
            reason = explain.starts(turn, free_milli=self._yard.free_milli)
            self._yard.start(self._started(turn, placement))
            where = placement if self._knows_hosts else {}
            return Decision(
                workload=gang.workload, action=Action.START, reason=reason, numbers=numbers, placement=where
            )
        reason = self._waits(turn, held, safe_until_s, numbers)
        return Decision(workload=gang.workload, action=Action.WAIT, reason=reason, numbers=numbers)

    def _waits(self, turn: Turn, held: Reservation | None, safe_until_s: int, numbers: dict[str, int]) -> str:
        """Find room for a gang that cannot start now, and say what it waits for."""
        free_milli = self._yard.free_milli
        if turn.klass == "unallocated":
            return explain.waits_for_free(turn, free_milli=free_milli)
        size_class = self._yard.size_class(turn.workload.gpus_milli)
        kept = self._reserve(turn, held, size_class)
        if kept is not None:
            numbers["reserved_at_s"] = kept.at_s
            return explain.waits_for_reservation(
                turn, kept, free_milli=free_milli, names_hosts=self._knows_hosts
            )
        blocking = self._blocking(turn, safe_until_s)
        if blocking is not None:
            numbers["reserved_at_s"] = blocking.at_s
            return explain.waits_beside(turn, blocking)
        head = self._heads[size_class]
        if head is turn:
            return explain.waits_at_head(turn, self._book.bound_of(size_class), free_milli=free_milli)
        numbers["head_missing_milli"] = missing_milli = self._missing[head.workload.workload]
        return explain.waits_behind(turn, head, head_missing_milli=missing_milli)

    def _reserve(self, turn: Turn, held: Reservation | None, size_class: SizeClass) -> Reservation | None:
        """Return the reservation of a gang of funded work: a promise when there are victims, else what it held.

        The first of a size class that finds no victims is its head, and gets the class's reservation.
        """
        if held is not None and held.kind is ReservationKind.PROMISE:
            self._book.keep(held)
            return held
        victims = self._preemption.find(turn, only_own=size_class in self._heads)
        if victims is not None:
            return self._book.promise(turn, victims)
        is_head = self._heads.setdefault(size_class, turn) is turn
        if held is not None:
            self._book.keep(held)
        elif is_head and self._book.bound_of(size_class) is None:
            held = self._book.target(turn)
        if is_head:
            self._missing[turn.workload.workload] = max(turn.workload.gpus_milli - self._yard.free_milli, 0)
        return held

    def _blocking(self, turn: Turn, safe_until_s: int) -> Reservation | None:
        """Return the earliest of the reservations but for which the gang could start now, if that is so."""
        bounds = self._yard.bounds_before(safe_until_s)
        gang = turn.workload
        if not bounds or self._yard.fit_now(gang.gpus_milli, gang.gpu_model, bounds[0].at_s) is None:
            return None
        return bounds[0]

    def _started(self, turn: Turn, placement: Placement) -> RunningRun:
        gang = turn.workload
        return RunningRun(
            workload=gang.workload,
            run=_STARTED,
            account=gang.account,
            gpus_milli=gang.gpus_milli,
            started_at_s=self._at_s,
            protected_until_s=self._at_s + self._protected_s(turn),
            klass=turn.klass,
            placement=placement,
            priority=gang.priority,
        )

    def _safe_until_s(self, turn: Turn) -> int:
        """Return until when other accounts' work could not take the GPUs of a start."""
        if turn.klass == "unallocated":
            return self._at_s
        return self._at_s + max(self._protected_s(turn), self._config.quantum_s)

    def _protected_s(self, turn: Turn) -> int:
        return min(turn.workload.minimum_runtime_s, self._config.protection_cap_s)

    def _numbers(self, turn: Turn) -> dict[str, int]:
        numbers = {
            "position": turn.position,
            "gpus_milli": turn.workload.gpus_milli,
            "free_milli": self._yard.free_milli,
            "missing_milli": max(turn.workload.gpus_milli - self._yard.free_milli, 0),
        }
        leaf = turn.chain[-1]
        if turn.klass == "allocated" and leaf.entitled:
            numbers["ratio_ppm"] = explain.ratio_millionths(leaf.used, leaf.entitled) or 0
        return numbers
