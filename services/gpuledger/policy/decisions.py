"""What happens to every waiting workload, and which runs have to leave: one walk through the turns."""

from collections.abc import Iterable, Iterator

from gpuledger.policy import explain
from gpuledger.policy.contenders import Standing
from gpuledger.policy.fair_share import Turn, Turns
from gpuledger.policy.lines import ASK, WORKLOAD, Ask
from gpuledger.policy.outcomes import Action, Decision, Shared
from gpuledger.policy.outlook import Outlook, figures
from gpuledger.policy.placement import Placement
from gpuledger.policy.preemption import Preemption
from gpuledger.policy.reservations import Reservations
from gpuledger.policy.state import (
    ClusterState,
    PendingWorkload,
    PolicyConfig,
    Reservation,
    ReservationKind,
    RunningRun,
)
from gpuledger.policy.yard import SizeClass, Yard

STARTED = ""
"""The run of a start has no id yet."""


class Walk:
    """One pass through the turns: what fits starts; the first of a size class that does not looks for victims.

    Args:
        holders: The turns of those who hold a reservation; others are ignored.
        state: The cluster.
        yard: Its hosts.
        preemption: The search for victims.
        config: The knobs.
        has_words: Whether decisions have sentences and figures; where a workload stands is worked out for these alone.
    """

    def __init__(
        self,
        holders: Iterable[Turn],
        state: ClusterState,
        yard: Yard,
        preemption: Preemption,
        config: PolicyConfig,
        *,
        has_words: bool = True,
    ) -> None:
        self._at_s = state.at_s
        self._has_words = has_words
        self._knows_hosts = bool(state.hosts)
        self.yard = yard
        self.preemption = preemption
        self._config = config
        self._gives_dates = config.reservations == "heads"
        reserved = {kept.workload for kept in state.reservations}
        holding = {turn.workload.workload: turn for turn in holders if turn.workload.workload in reserved}
        self.book = Reservations(state, holding, yard, preemption, config)
        self._heads: dict[SizeClass, Turn] = {}
        self._exceeded: dict[SizeClass, tuple[Standing, Standing]] = {}
        """Heads that get no bound, for their side is further beyond its entitlement than one that waits."""
        self._awaited: Turn | None = None
        """The first of the queue, where what others have reserved leaves no hosts for it: nobody gets a new bound."""
        self._awaits_promises = False
        """Whether promises alone are in its way: then nobody gets a new promise either."""
        self._kept_for: str | None = None
        """The unallocated work that hosts are kept for, from when on unallocated work is decided for."""
        self._aheads: dict[SizeClass, explain.Ahead] = {}
        self._outlooks: dict[Ask, Outlook] = {}
        self._failed: dict[Ask, Outlook] = {}
        """What those waited for who found no room."""
        self._in_vain: set[Ask] = set()
        """Those of them for whom nothing was given back since."""
        self._own_in_vain: set[tuple[str, int, str | None, int]] = set()
        """Likewise, who found no room with runs of its own account: the account, milli-GPU, model and priority."""
        self._seen = yard.version

    def keep_for(self, workload: PendingWorkload | None) -> None:
        """Keep hosts from all unallocated work but this; every funded turn is decided. None keeps nothing."""
        if workload is not None:
            self._kept_for = workload.workload
            self.yard.set_aside(workload.gpus_milli, workload.gpu_model)

    def decide(self, turns: Turns, keeper: PendingWorkload | None = None) -> Iterator[Decision | Shared]:
        """Yield the decision of every turn, in order, then the runs that have to leave, by id.

        Most wait as others do: of these no turn is made.

        Args:
            turns: All of them, funded work first.
            keeper: For whom hosts are kept from other unallocated work.
        """
        shared, kept, may_take_own = self._outlooks.get, self.book.kept, self.preemption.may_take_own
        for entry, line, place, before in turns.places():
            gang = entry[WORKLOAD]
            if keeper is not None and entry[ASK][0] == "unallocated":
                self.keep_for(keeper)
                keeper = None
            outlook = shared(entry[ASK]) or self._renewed(Turn(entry, line, place, before))
            if (
                outlook is None
                or gang.workload in kept
                or gang.workload == self._kept_for
                or (
                    outlook.is_funded
                    and may_take_own(gang.account, gang.priority)
                    and _own_kind(gang) not in self._own_in_vain
                )
            ):
                yield self.decide_one(Turn(entry, line, place, before))
            else:
                yield Shared(entry, line, place, before, outlook)
        yield from self.leaving()

    def leaving(self) -> Iterator[Decision | Shared]:
        """Close the book and yield the runs that have to leave, by id."""
        self.book.close()
        for _, victim in sorted(self.book.victims.items()):
            run, reason, numbers = victim.run, "", dict[str, int]()
            if self._has_words:
                reason = explain.leaves(victim)
                numbers = {"gpus_milli": run.gpus_milli, "lost_gpu_ms": run.lost_gpu_ms(self._at_s)}
                numbers |= explain.figures(victim)
            yield Decision(
                workload=run.workload, action=Action.PREEMPT, reason=reason, numbers=numbers, run=run.run
            )

    def reservations(self) -> tuple[Reservation, ...]:
        """Return what is reserved when every turn is decided, by workload."""
        return tuple(self.book.kept[workload] for workload in sorted(self.book.kept))

    def decide_one(self, turn: Turn) -> Decision | Shared:
        """Decide for the next turn; those before it that could change anything are decided.

        Whom GPUs are promised waits on for them where nobody gave any up that would do.
        """
        gang = turn.workload
        held = self.book.kept.get(gang.workload)
        is_promised = held is not None and held.kind is ReservationKind.PROMISE
        if held is not None and is_promised and not self.yard.is_free_for(gang.gpus_milli, gang.gpu_model):
            return self._wait_reserved(turn, held, self.yard.free_milli)
        seen, leaving = self.yard.version, len(self.yard.leaving)
        held = self.book.release(gang.workload)
        if held is not None:
            self.preemption.forget()
        safe_until_s = self._safe_until_s(turn.ask)
        fit = self.yard.fit_aside if gang.workload == self._kept_for else self.yard.fit_now
        placement = fit(gang.gpus_milli, gang.gpu_model, safe_until_s)
        free_milli = self.yard.free_milli
        if placement is not None:
            reason, numbers = "", dict[str, int]()
            if self._has_words:
                reason, numbers = explain.starts(turn, free_milli=free_milli), figures(turn, free_milli)
            self.yard.start(self._started(turn, placement))
            if held is not None:
                self.book.spare_for(gang.workload)
                self._give_back()
            self._note_changes()
            return Decision(
                workload=gang.workload,
                action=Action.START,
                reason=reason,
                numbers=numbers,
                placement=placement if self._knows_hosts else {},
                klass=turn.klass,
            )
        decision = self._wait(turn, held, safe_until_s, free_milli)
        is_given_up = held is not None and self.book.kept.get(gang.workload) is not held
        if is_given_up or len(self.yard.leaving) != leaving:
            self._give_back()
        elif held is not None:
            self._pass_over(seen)
        self._note_changes()
        return decision

    def headless(self, ask: Ask) -> SizeClass | None:
        """Return the size class of who asks for this while it has no head; None for unallocated work."""
        klass, gpus_milli, _, _ = ask
        size_class = self.yard.size_class(gpus_milli)
        return None if klass == "unallocated" or size_class in self._heads else size_class

    def has_no_room(self, ask: Ask) -> bool:
        """Say whether there is no room for who asks for this now, nor soon for funded work."""
        klass, gpus_milli, gpu_model, _ = ask
        if self.yard.fit_now(gpus_milli, gpu_model, self._safe_until_s(ask)) is not None:
            return False
        return klass == "unallocated" or self.yard.fit_soon(gpus_milli, gpu_model) is None

    def _wait(
        self, turn: Turn, held: Reservation | None, safe_until_s: int, free_milli: int
    ) -> Decision | Shared:
        """Find room for a gang that cannot start now, and say what it waits for."""
        if turn.klass == "unallocated":
            return self._wait_with_others(turn, Outlook(turn.workload.gpus_milli, free_milli))
        size_class = self.yard.size_class(turn.workload.gpus_milli)
        kept = self._reserve(turn, held, size_class)
        if kept is not None:
            return self._wait_reserved(turn, kept, free_milli)
        if not self._has_words:
            return self._wait_in_silence(turn, is_alone=self._heads[size_class] is turn)
        blocking = self._blocking(turn, safe_until_s)
        head = self._heads[size_class]
        if head is not turn:
            ahead = self._aheads[size_class]
            self._own_in_vain.add(_own_kind(turn.workload))
            return self._wait_with_others(
                turn, Outlook(turn.workload.gpus_milli, free_milli, blocking, ahead)
            )
        if blocking is not None:
            reason = explain.waits_beside(turn.position, turn.workload.gpus_milli, blocking)
            return self._wait_alone(turn, free_milli, reason, {"reserved_at_s": blocking.at_s})
        reason = explain.waits_at_head(
            turn,
            self.book.bound_of(size_class),
            free_milli=free_milli,
            awaited=self._awaited,
            exceeded=self._exceeded.get(size_class),
            gives_dates=self._gives_dates,
        )
        return self._wait_alone(turn, free_milli, reason, {})

    def _wait_reserved(self, turn: Turn, kept: Reservation, free_milli: int) -> Decision | Shared:
        """Wait for what is kept for a gang."""
        if not self._has_words:
            return self._wait_in_silence(turn, is_alone=True)
        names_hosts = self._knows_hosts
        reason = explain.waits_for_reservation(turn, kept, free_milli=free_milli, names_hosts=names_hosts)
        return self._wait_alone(turn, free_milli, reason, {"reserved_at_s": kept.at_s})

    def _wait_in_silence(self, turn: Turn, *, is_alone: bool) -> Decision | Shared:
        """Wait for what nobody is told of; alone is who holds a reservation or is the head of a size class."""
        if is_alone:
            return Decision(workload=turn.workload.workload, action=Action.WAIT, reason="", numbers={})
        outlook = Outlook(turn.workload.gpus_milli, self.yard.free_milli)
        return Shared(turn.entry, turn.line, turn.place, turn.before, outlook)

    def _wait_alone(self, turn: Turn, free_milli: int, reason: str, numbers: dict[str, int]) -> Decision:
        return Decision(
            workload=turn.workload.workload,
            action=Action.WAIT,
            reason=reason,
            numbers=figures(turn, free_milli) | numbers,
        )

    def _wait_with_others(self, turn: Turn, outlook: Outlook) -> Shared:
        """Wait for what everybody waits for who asks for the same, until something changes."""
        self._note_changes()
        self._outlooks[turn.ask] = self._failed[turn.ask] = outlook
        self._in_vain.add(turn.ask)
        return Shared(turn.entry, turn.line, turn.place, turn.before, outlook)

    def _renewed(self, turn: Turn) -> Outlook | None:
        """Return what those wait for now who ask for the same and found no room; None when there may be some.

        Starts, promises and bound reservations only take room away: while nobody gives any back, they find none. If
        somebody did, and there is none for them now nor soon, they wait on behind the head of their size class: from
        others they could not take any. What is free is another amount, and which reservation stands in the way, too.
        """
        ask = turn.ask
        before = self._failed.get(ask)
        if before is None:
            return None
        safe_until_s = self._safe_until_s(turn.ask)
        if ask not in self._in_vain:
            _, gpus_milli, gpu_model, _ = ask
            if self.yard.fit_now(gpus_milli, gpu_model, safe_until_s) or (
                before.is_funded and self.yard.fit_soon(gpus_milli, gpu_model)
            ):
                return None
            self._in_vain.add(ask)
        blocking = self._blocking(turn, safe_until_s) if before.is_funded else None
        outlook = Outlook(before.gpus_milli, self.yard.free_milli, blocking, before.ahead)
        self._outlooks[ask] = outlook
        return outlook

    def _give_back(self) -> None:
        """Room was given back: whoever found none may find some now."""
        self._in_vain.clear()
        self._own_in_vain.clear()

    def _pass_over(self, seen: int) -> None:
        """Take the hosts for unchanged since a version: what was given up is kept again."""
        if self._seen == seen:
            self._seen = self.yard.version

    def _note_changes(self) -> None:
        if self._seen != self.yard.version:
            self._outlooks.clear()
            self._seen = self.yard.version

    def _reserve(self, turn: Turn, held: Reservation | None, size_class: SizeClass) -> Reservation | None:
        """Return the reservation of a gang of funded work: a promise when there are victims, else what it held.

        The first of a size class that finds no victims is its head, and gets the class's reservation; unless somebody
        whom it exceeds waits for the same, for runs would leave for it whatever the ratios. Where others' reservations
        leave no hosts to the first of all, no new ones are made until they have led to their starts: else those of one
        class after the other could keep it waiting for ever.
        """
        if held is not None and held.kind is ReservationKind.PROMISE:
            self.book.keep(held)
            return held
        if not self._awaits_promises:
            victims = self.preemption.find(turn, only_own=size_class in self._heads)
            if victims is not None:
                return self.book.promise(turn, victims)
        is_first = not self._heads
        is_head = self._heads.setdefault(size_class, turn) is turn
        if held is not None:
            self.book.keep(held)
        elif (
            is_head and self._gives_dates and self._awaited is None and self.book.bound_of(size_class) is None
        ):
            exceeded = None if is_first else self.preemption.exceeded_by(turn)
            if exceeded is not None:
                self._exceeded[size_class] = exceeded
            else:
                held = self.book.target(turn)
            if held is None and is_first and not self.book.is_overdue():
                self._awaited, self._awaits_promises = turn, not self.book.has_bounds()
        if is_head and self._has_words:
            missing_milli = max(turn.workload.gpus_milli - self.yard.free_milli, 0)
            self._aheads[size_class] = explain.Ahead.of(turn, missing_milli)
        return held

    def _blocking(self, turn: Turn, safe_until_s: int) -> explain.Kept | None:
        """Return the earliest of the reservations but for which the gang could start now, if that is so."""
        bounds = self.yard.bounds_before(safe_until_s)
        gang = turn.workload
        if not bounds or self.yard.fit_now(gang.gpus_milli, gang.gpu_model, bounds[0].at_s) is None:
            return None
        return explain.Kept(bounds[0].workload, bounds[0].at_s)

    def _started(self, turn: Turn, placement: Placement) -> RunningRun:
        run, _ = turn.workload.begun(
            STARTED, self._at_s, klass=turn.klass, placement=placement, config=self._config
        )
        return run

    def _safe_until_s(self, ask: Ask) -> int:
        """Return until when other accounts' work could not take the GPUs of a start."""
        klass, _, _, minimum_runtime_s = ask
        if klass == "unallocated":
            return self._at_s
        protected_s = self._config.protected_s(minimum_runtime_s)
        return self._at_s + max(protected_s, self._config.quantum_s)


def _own_kind(gang: PendingWorkload) -> tuple[str, int, str | None, int]:
    """Return what those are told apart by who may take runs of their own account."""
    return gang.account, gang.gpus_milli, gang.gpu_model, gang.priority
