"""GPUs that are kept for waiting gangs: what the cycle before left of them, and the calendar of new ones.

A *promise* keeps GPUs that runs were told to leave. A *bound* keeps the hosts that can be emptied earliest for the gang
at the head of its size class: at its instant every run there is past its protection and its quantum, and leaves
whatever the ratios, so a gang that holds one starts within protection cap and grace.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from gpuledger.policy.fair_share import Turn
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.state import ClusterState, PolicyConfig, Reservation, ReservationKind, RunId, RunningRun
from gpuledger.policy.victims import Ground, Victim
from gpuledger.policy.yard import SizeClass, Yard


class Reservations:
    """The reservations while a cycle decides.

    Args:
        state: The cluster, with the reservations that the cycle before left.
        turns: Those gangs that wait and have one of these, by workload.
        yard: The hosts; what is reserved is kept there.
        preemption: The search for victims.
        config: The knobs.

    Attributes:
        kept: Reservation by workload.
        victims: Why each run has to leave.
    """

    def __init__(
        self,
        state: ClusterState,
        turns: Mapping[str, Turn],
        yard: Yard,
        preemption: Preemption,
        config: PolicyConfig,
    ) -> None:
        self._at_s = state.at_s
        self._config = config
        self._yard = yard
        self._preemption = preemption
        self._turns = dict(turns)
        self._state = state
        self.kept: dict[str, Reservation] = {}
        self.victims: dict[RunId, Victim] = {}
        self._drain(state)
        for reservation in sorted(state.reservations, key=_in_order):
            turn = turns.get(reservation.workload)
            if turn is not None and self._is_of_use(reservation, turn):
                self._carry(reservation, turn)
        for reservation in [kept for kept in self.kept.values() if kept.kind is ReservationKind.BOUND]:
            if reservation.at_s <= self._at_s:
                self._call_in(reservation, turns[reservation.workload])

    @cached_property
    def _runs(self) -> dict[RunId, RunningRun]:
        """The runs as the cycle begins."""
        return {run.id: run for run in self._state.running}

    def bound_of(self, size_class: SizeClass) -> Reservation | None:
        """Return the bound reservation of a class, if there is one."""
        for kept in self.kept.values():
            if kept.kind is ReservationKind.BOUND and self._class_of(kept) is size_class:
                return kept
        return None

    def has_bounds(self) -> bool:
        """Say whether any class has a bound reservation."""
        return any(kept.kind is ReservationKind.BOUND for kept in self.kept.values())

    def is_overdue(self) -> bool:
        """Say whether a promise should have led to a start long ago: a run that was told to leave does not."""
        return any(
            kept.kind is ReservationKind.PROMISE and kept.at_s + self._config.quantum_s < self._at_s
            for kept in self.kept.values()
        )

    def release(self, workload: str) -> Reservation | None:
        """Drop the reservation of a workload, if it has one, and return it."""
        reservation = self.kept.pop(workload, None)
        if reservation is not None:
            if reservation.kind is ReservationKind.BOUND:
                self._yard.unbind(reservation)
            else:
                self._yard.withdraw(reservation.placement, self._due_s(reservation))
        return reservation

    def keep(self, reservation: Reservation) -> None:
        """Keep GPUs for a workload."""
        self.kept[reservation.workload] = reservation
        if reservation.kind is ReservationKind.BOUND:
            self._yard.bind(reservation)
        else:
            self._yard.promise(reservation.placement, self._due_s(reservation))

    def spare_for(self, workload: str) -> None:
        """Let the runs stay that were to leave for a workload which started elsewhere; not where others count on it."""
        for run, victim in list(self.victims.items()):
            if victim.asker is None or victim.asker.workload.workload != workload:
                continue
            self._preemption.spare(victim.run)
            if self._yard.is_missed(run):
                self._preemption.take(victim.run)
            else:
                del self.victims[run]

    def promise(self, turn: Turn, victims: Iterable[Victim]) -> Reservation:
        """Promise a gang what its victims leave, and what is free beside."""
        gang = turn.workload
        self._turns[gang.workload] = turn
        placement = self._yard.fit_soon(gang.gpus_milli, gang.gpu_model)
        assert placement is not None  # noqa: S101 - the victims were chosen so that it fits
        return self._promise(Reservation(
            workload=gang.workload, placement=placement, at_s=self._at_s, kind=ReservationKind.PROMISE
        ), victims)  # fmt: skip

    def target(self, turn: Turn) -> Reservation | None:
        """Reserve for a gang the hosts that can be emptied earliest; None when other reservations leave none."""
        gang = turn.workload
        leaves_s, rank = self._leaves_s(turn), self._preemption.rank_for(turn)
        # Who may be moved first; of several at once, who is to leave first for a gang.
        everybody = sorted(
            (*self._runs.values(), *self._yard.started),
            key=lambda run: (leaves_s(run), run.klass == "allocated", rank(run), run.id),
        )
        staying = (run for run in everybody if run.id not in self._yard.leaving)
        found = self._yard.first_fit(gang.gpus_milli, gang.gpu_model, staying)
        if found is None:
            return None
        placement, last = found
        # Who was told to leave may be spared after all.
        in_the_way = [
            self._runs[run]
            for run in self._yard.leaving
            if not placement.keys().isdisjoint(self._yard.placements[run])
        ]
        empty_s = map(leaves_s, in_the_way if last is None else (*in_the_way, last))
        at_s = max(self._at_s + self._config.notice_s, *empty_s)
        reservation = Reservation(
            workload=gang.workload, placement=placement, at_s=at_s, kind=ReservationKind.BOUND
        )
        self.keep(reservation)
        return reservation

    def close(self) -> None:
        """Spare the runs that no promise needs any more; note with each promise who leaves its hosts."""
        promised: dict[str, list[str]] = defaultdict(list)
        for workload, kept in sorted(self.kept.items()):
            for host in kept.placement if kept.kind is ReservationKind.PROMISE else ():
                promised[host].append(workload)
        for run, victim in reversed(list(self.victims.items())):
            if victim.ground is not Ground.DRAINING:
                self._spare(run, victim, promised)
        leaving: dict[str, set[RunId]] = defaultdict(set)
        for run in self._yard.leaving:
            there = self._beneficiaries(run, promised)
            in_time = {workload for workload in there if self._is_in_time(run, self.kept[workload])}
            for workload in in_time or there:
                leaving[workload].add(run)
        for workload, runs in leaving.items():
            self.kept[workload] = replace(self.kept[workload], leaving=tuple(sorted(runs)))

    def _spare(self, run: RunId, victim: Victim, promised: Mapping[str, list[str]]) -> None:
        """Let a run stay unless promises need its GPUs; it leaves for one of these."""
        self._preemption.spare(victim.run)
        beneficiaries = self._beneficiaries(run, promised)
        if not beneficiaries or not self._yard.is_missed(run):
            del self.victims[run]
            return
        self._preemption.take(victim.run)
        if victim.asker is None or victim.asker.workload.workload not in self.kept:
            ground = Ground.EARLIER if victim.ground is Ground.EARLIER else Ground.PASSED_ON
            self.victims[run] = Victim(victim.run, ground, self._turns[min(beneficiaries)])

    def _beneficiaries(self, run: RunId, promised: Mapping[str, list[str]]) -> set[str]:
        return {workload for host in self._yard.placements[run] for workload in promised.get(host, ())}

    def _drain(self, state: ClusterState) -> None:
        """Let the runs on draining hosts leave that nothing protects."""
        draining = self._yard.draining
        if not draining:
            return
        for run in sorted(state.running, key=lambda run: run.id):
            is_there = not draining.isdisjoint(self._yard.placements[run.id])
            if is_there and run.is_preemptible(self._at_s):
                self._preemption.take(run)
                self.victims[run.id] = Victim(run, Ground.DRAINING)

    def _is_of_use(self, reservation: Reservation, turn: Turn) -> bool:
        return (
            turn.klass == "allocated"
            and sum(reservation.placement.values()) == turn.workload.gpus_milli
            and self._yard.has(reservation.placement)
        )

    def _carry(self, reservation: Reservation, turn: Turn) -> None:
        """Keep a reservation of the cycle before, unless somebody stands in its way."""
        if reservation.kind is ReservationKind.BOUND:
            if self.bound_of(self._class_of(reservation)) is None and self._yard.can_bind(reservation):
                self.keep(reservation)
            return
        still_there = (self._runs[run] for run in reservation.leaving if run in self._runs)
        leaving = [run for run in still_there if run.is_preemptible(self._at_s)]  # a late fact may protect it
        told = [run for run in leaving if run.id not in self._yard.leaving]
        for run in told:
            self._preemption.take(run)
        for run in leaving:
            self._yard.leaves_by(run, reservation.at_s)
        if self._yard.holds_soon(reservation.placement):
            self.keep(replace(reservation, leaving=()))
            self.victims.update((run.id, Victim(run, Ground.EARLIER, turn)) for run in told)
        else:
            for run in told:
                self._preemption.spare(run)

    def _call_in(self, reservation: Reservation, turn: Turn) -> None:
        """Let the runs leave that stand on GPUs whose time has come."""
        self.release(reservation.workload)
        victims = self._preemption.clear(turn, reservation.placement)
        assert victims is not None  # noqa: S101 - it stood beside all who are safe, and the others may leave
        self._promise(reservation, victims)

    def _promise(self, reservation: Reservation, victims: Iterable[Victim]) -> Reservation:
        self.victims.update((victim.run.id, victim) for victim in victims)
        promised = replace(reservation, at_s=self._at_s + self._config.grace_s, kind=ReservationKind.PROMISE)
        self.keep(promised)
        return promised

    def _is_in_time(self, run: RunId, promise: Reservation) -> bool:
        """Say whether a run is gone when a promise is due; whom this cycle tells to leave is for its own promises."""
        return self._due_s(promise) is None or self._yard.deadlines.is_gone_by(run, promise.at_s)

    def _due_s(self, reservation: Reservation) -> int | None:
        """Return from when on an earlier cycle promised GPUs; None when this one does."""
        return reservation.at_s if reservation.at_s < self._at_s + self._config.grace_s else None

    def _class_of(self, reservation: Reservation) -> SizeClass:
        return self._yard.size_class(sum(reservation.placement.values()))

    def _leaves_s(self, turn: Turn) -> Callable[[RunningRun], int]:
        """Return from when on a gang may count on a run to leave; on one that it has to spare, after the cap only."""
        is_spared, leaving = self._preemption.spared_by(turn), self._yard.leaving
        safe_s, spared_s = self._safe_s, self._at_s + self._config.protection_cap_s

        def leaves_s(run: RunningRun) -> int:
            name = run.id
            if name not in leaving and is_spared(run):
                return spared_s
            return safe_s[name] if name in safe_s else self._safe_until_s(run)

        return leaves_s

    @cached_property
    def _safe_s(self) -> dict[RunId, int]:
        """From when on each run may be told to leave, of those that there are as the cycle begins."""
        return {name: self._safe_until_s(run) for name, run in self._runs.items()}

    def _safe_until_s(self, run: RunningRun) -> int:
        return max(run.safe_until_s(self._config.quantum_s), self._at_s)


def _in_order(reservation: Reservation) -> tuple[bool, int, str]:
    return (reservation.kind is ReservationKind.BOUND, reservation.at_s, reservation.workload)
