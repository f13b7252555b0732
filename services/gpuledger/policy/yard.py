"""What is free on the hosts of a cluster: now, once the runs that were told to leave are gone, and beside reservations.

Three amounts per host. *Free* is what nobody occupies. *Soon* is what nobody occupies once the leaving runs are gone,
less what is promised. A bound reservation takes nothing yet; but whoever is still safe at its instant has to fit beside
it, and so does all that is promised, whoever was told to leave. So a start needs room that is free and soon, and, when
it will be safe beyond a reservation, beside that one too. And it takes nothing that an earlier promise has from its
instant on and that only runs would make good which leave later.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from copy import copy
from enum import IntEnum
from itertools import chain

from gpuledger.policy.deadlines import Deadlines
from gpuledger.policy.occupancy import Occupancy, Occupant
from gpuledger.policy.placement import Placement, Room
from gpuledger.policy.state import ClusterState, Reservation, RunId, RunningRun

_FEW_HOSTS = 8

_Bounds = tuple[int, ...]
"""Bound reservations, by their numbers."""

_NONE: _Bounds = ()


class SizeClass(IntEnum):
    """Gangs of one class wait for one another; each class has one reservation."""

    ONE_HOST = 0
    FEW_HOSTS = 1
    MANY_HOSTS = 2


class Yard:
    """The hosts while a cycle decides.

    Args:
        state: The cluster. Without hosts it is one host, of any model.
        quantum_s: How long a start of funded work is safe from other accounts' work.
        occupancy: Who is where in that state, for whoever knows it; nothing here changes it.

    Attributes:
        placements: Where every run is.
        started: The runs that this cycle lets start.
        leaving: The runs that have been told to leave.
        free_milli: What nobody occupies on hosts that take new runs; below 0 where more runs than there is.
        deadlines: What earlier cycles promised by when.
        version: Grows with every change.
    """

    def __init__(self, state: ClusterState, quantum_s: int, occupancy: Occupancy | None = None) -> None:
        self._there = occupancy or Occupancy(state, quantum_s)
        self._quantum_s = quantum_s
        self._size = self._there.sizes
        self._largest_milli = state.largest_host_milli or self._there.largest_milli
        self._smallest_milli = self._there.smallest_milli
        self.version = 0
        self._begin(state.at_s)

    def at(self, at_s: int) -> "Yard":
        """Return the same hosts and runs at another instant, as if nothing had been decided yet."""
        assert not self.version  # noqa: S101 - nothing has been decided here
        yard = copy(self)
        yard._begin(at_s)  # noqa: SLF001 - one of its own
        return yard

    def after(self, state: ClusterState, gone: Iterable[RunningRun], come: Iterable[RunningRun]) -> "Yard":
        """Return the hosts of a state that some runs left and others came to since, with nothing decided yet."""
        there, come = self._there.copy(), tuple(come)
        return Yard(state, self._quantum_s, there if there.follow(state, gone, come) else None)

    def _begin(self, at_s: int) -> None:
        """Take what a cycle changes for its own, at an instant; nothing has been decided yet."""
        there = self._there
        self._at_s = at_s
        self.placements, self._parts = dict(there.placements), dict(there.parts)
        self.started: list[RunningRun] = []
        self.leaving: set[RunId] = set()
        self._free, self._soon, self._most = dict(there.free), dict(there.free), there.most_at(at_s)
        self.free_milli = sum(self._free.values())
        self._started_on: dict[str, list[Occupant]] = {}
        self._promised: Counter[str] = Counter()
        self._aside: dict[str, int] = {}
        """What nobody starts on, for who comes first of those who take from nobody."""
        self.deadlines = Deadlines()
        self._bounds: list[Reservation] = []
        self._bound_on: dict[str, Reservation] = {}
        self._numbers: dict[str, tuple[int, Reservation]] = {}
        """The last bound reservation of each workload, and its number, which it has again when it is kept again."""
        self._numbered = 0
        self._lasting = there.room.copy()
        self._idle = there.room
        """What nobody occupies, whoever it is kept for; it is the occupancy's until somebody starts."""
        self._now: Room | None = None
        """The room of starts, whatever bound reservations there are."""
        self._beside_bounds: dict[_Bounds, Room] = {}
        """The same beside some of them."""
        self._stale: set[str] = set()
        # What has been seen not to fit, until more becomes free.
        self._full: set[tuple[_Bounds, int, str | None]] = set()
        self._full_soon: set[tuple[int, str | None]] = set()

    @property
    def draining(self) -> frozenset[str]:
        """The hosts that are being emptied."""
        return self._there.draining

    def is_possible(self, gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether a gang fits into the cluster when nothing runs."""
        return self._there.is_possible(gpus_milli, gpu_model)

    def has(self, placement: Placement) -> bool:
        """Say whether the hosts of a placement take runs, and are large enough."""
        return all(0 < milli <= self._size.get(host, 0) for host, milli in placement.items())

    def could_share(self, gpu_model: str | None, other: str | None) -> bool:
        """Say whether work for a model could take GPUs that work for another could take."""
        mine, theirs = self._of(gpu_model), self._of(other)
        return mine is None or theirs is None or mine == theirs

    def goes_on_one_host(self, gpus_milli: int) -> bool:
        """Say whether a gang starts on one host wherever it starts."""
        return gpus_milli <= self._smallest_milli

    def size_class(self, gpus_milli: int) -> SizeClass:
        """Return the class of a gang, by how many of the largest installed hosts it needs, well or not."""
        hosts = -(-gpus_milli // self._largest_milli)
        if hosts <= 1:
            return SizeClass.ONE_HOST
        return SizeClass.FEW_HOSTS if hosts <= _FEW_HOSTS else SizeClass.MANY_HOSTS

    def helps(self, run: RunningRun, gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether a run is on a host where, with everybody gone who may be, a part of a gang has room."""
        model = self._of(gpu_model)
        for host, _ in self._parts[run.id]:
            size_milli = self._size[host]
            least_milli = gpus_milli if gpus_milli <= size_milli else gpus_milli % size_milli or size_milli
            if self._most[host] >= least_milli and model in (None, self._there.models[host]):
                return True
        return False

    def fit_now(self, gpus_milli: int, gpu_model: str | None, safe_until_s: int) -> Placement | None:
        """Return where a gang may start now, or None.

        Args:
            gpus_milli: What it asks for.
            gpu_model: The model it insists on.
            safe_until_s: Until when other accounts' work cannot take its GPUs; no reservation may wait for it.
        """
        now = self._freshened()
        gpu_model = self._of(gpu_model)
        if (_NONE, gpus_milli, gpu_model) in self._full:
            return None
        placement = now.fit(gpus_milli, gpu_model)
        if placement is None:  # then there is none beside reservations either
            self._full.add((_NONE, gpus_milli, gpu_model))
            return None
        count = bisect_left(self._bounds, safe_until_s, key=lambda bound: bound.at_s)
        if not count:
            return placement
        bounds = tuple([self._numbers[bound.workload][0] for bound in self._bounds[:count]])
        if (bounds, gpus_milli, gpu_model) in self._full:
            return None
        placement = self._room_beside(bounds).fit(gpus_milli, gpu_model)
        if placement is None:
            self._full.add((bounds, gpus_milli, gpu_model))
        return placement

    def is_free_for(self, gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether nobody occupies what a gang asks for, whoever it is kept for."""
        return self._idle.fit(gpus_milli, self._of(gpu_model)) is not None

    def fit_soon(self, gpus_milli: int, gpu_model: str | None) -> Placement | None:
        """Return where a gang may stay once the leaving runs are gone, or None."""
        asked = (gpus_milli, self._of(gpu_model))
        if asked in self._full_soon:
            return None
        placement = self._lasting.fit(*asked)
        if placement is None:
            self._full_soon.add(asked)
        return placement

    def fits_without(self, runs: Iterable[RunningRun], gpus_milli: int, gpu_model: str | None) -> bool:
        """Say whether a gang may stay once the leaving runs are gone and these, too."""
        soon: dict[str, int] = {}
        for run in runs:
            for host, milli in self._parts[run.id] if run.id not in self.leaving else ():
                soon[host] = soon.get(host, self._soon[host]) + milli
        for host, bound in self._bound_on.items():
            if host in soon:
                soon[host] = min(soon[host], self._beside(host, bound))
        return self._lasting.would_fit(soon, gpus_milli, self._of(gpu_model))

    def set_aside(self, gpus_milli: int, gpu_model: str | None) -> None:
        """Keep what is free of the hosts that come closest to having room for a gang, up to what it asks of each."""
        self._aside = dict(self._freshened().emptiest(gpus_milli, self._of(gpu_model)))
        for host in self._aside:
            self._change(host)

    def fit_aside(self, gpus_milli: int, gpu_model: str | None, safe_until_s: int) -> Placement | None:
        """Return where the gang may start now for which hosts are kept; see ``fit_now``."""
        aside, self._aside = self._aside, {}
        self._stale.update(aside)
        placement = self.fit_now(gpus_milli, gpu_model, safe_until_s)
        self._aside = aside
        self._stale.update(aside)
        return placement

    def holds_soon(self, placement: Placement) -> bool:
        """Say whether exactly these GPUs can be promised."""
        return all(self._lasts(host) >= milli for host, milli in placement.items())

    def is_missed(self, run: RunId) -> bool:
        """Say whether a run that stays is missed on a host: in the end, or when a promise is due that counted on it."""
        return any(
            milli < 0
            for host, _ in self._parts[run]
            for milli in (
                self._soon[host],
                *self.deadlines.left(host, self._free[host], self.leaving, counting=run),
            )
        )

    def start(self, run: RunningRun) -> None:
        """Let a run start where its placement says."""
        if not self.started:
            self._idle = self._idle.copy()
        self.started.append(run)
        self.placements[run.id] = run.placement
        self._parts[run.id] = self._there.usable(run.placement)
        for host, milli in run.placement.items():
            self._free[host] -= milli
            self._soon[host] -= milli
            self._most[host] -= milli
            self.free_milli -= milli
            self._idle.set_free(host, self._free[host])
            self._started_on.setdefault(host, []).append(Occupant(milli, run.safe_until_s(self._quantum_s)))
            self._change(host)

    def leave(self, run: RunningRun) -> None:
        """Count a run as gone soon."""
        self.leaving.add(run.id)
        self._shift(self._parts[run.id], 1)

    def stay(self, run: RunningRun) -> None:
        """Count a run that was to leave as staying."""
        self.leaving.remove(run.id)
        self._shift(self._parts[run.id], -1)

    def leaves_by(self, run: RunningRun, at_s: int) -> None:
        """Note by when a leaving run is gone that an earlier cycle told so; the first note counts."""
        self.deadlines.leaves_by(run.id, at_s, self._parts[run.id])
        for host, _ in self._parts[run.id]:
            self._change(host)

    def promise(self, placement: Placement, due_s: int | None = None) -> None:
        """Keep GPUs that are free soon for one workload.

        Args:
            placement: The GPUs.
            due_s: From when on they were promised by an earlier cycle; None for a promise of this one.
        """
        self._promise(placement, due_s, 1)

    def withdraw(self, placement: Placement, due_s: int | None = None) -> None:
        """Keep no longer what was promised, from that instant on."""
        self._promise(placement, due_s, -1)

    def can_bind(self, reservation: Reservation) -> bool:
        """Say whether nobody who is safe beyond the reservation stands in its way, nor another reservation."""
        return all(
            host not in self._bound_on and self._beside(host, reservation) >= 0
            for host in reservation.placement
        )

    def bind(self, reservation: Reservation) -> None:
        """Let nobody be safe on these GPUs beyond the instant of the reservation."""
        _, last = self._numbers.get(reservation.workload, (0, None))
        if last is not reservation:
            self._numbered += 1
            self._numbers[reservation.workload] = self._numbered, reservation
        self._bounds.append(reservation)
        self._bound_on.update(dict.fromkeys(reservation.placement, reservation))
        self._rebuild(reservation)

    def unbind(self, reservation: Reservation) -> None:
        """Drop a bound reservation."""
        self._bounds.remove(reservation)
        for host in reservation.placement:
            del self._bound_on[host]
        self._rebuild(reservation)

    def first_fit(
        self, gpus_milli: int, gpu_model: str | None, runs: Iterable[RunningRun]
    ) -> tuple[Placement, RunningRun | None] | None:
        """Return where a gang fits when the runs leave one after the other, and the last of those that had to.

        Hosts that are bound to another reservation, and promised GPUs, stay out of it.
        """
        room = self._lasting.copy()
        for host in self._bound_on:
            room.set_free(host, 0)
        last = None
        leavers = iter(runs)
        while (placement := room.fit(gpus_milli, self._of(gpu_model))) is None:
            last = next(leavers, None)
            if last is None:
                return None
            parts = self._parts[last.id]
            room.give({host: milli for host, milli in parts if host not in self._bound_on})
        return placement, last

    def bounds_before(self, safe_until_s: int) -> tuple[Reservation, ...]:
        """Return the bound reservations that work would pass, earliest first."""
        return tuple(bound for bound in self._bounds if bound.at_s < safe_until_s)

    def _room_beside(self, bounds: _Bounds) -> Room:
        """Return the room of starts beside some bound reservations."""
        room = self._beside_bounds.get(bounds)
        if room is None:
            room = self._beside_bounds[bounds] = self._freshened().copy()
            for host, bound in self._bound_on.items():
                if host in self._size and self._numbers[bound.workload][0] in bounds:
                    room.set_free(host, min(self._available(host), self._beside(host, bound)))
        return room

    def _of(self, gpu_model: str | None) -> str | None:
        return gpu_model if self._there.knows_models else None

    def _promise(self, placement: Placement, due_s: int | None, sign: int) -> None:
        for host, milli in placement.items():
            self._promised[host] += sign * milli
            self._most[host] -= sign * milli
            if due_s is not None:
                self.deadlines.promise(host, due_s, sign * milli)
        self._shift(self._there.usable(placement), -sign)

    def _shift(self, parts: Iterable[tuple[str, int]], sign: int) -> None:
        for host, milli in parts:
            self._soon[host] += sign * milli
            self._change(host)

    def _change(self, host: str) -> None:
        self._lasting.set_free(host, self._lasts(host))
        self._stale.add(host)
        self._full_soon.clear()
        self.version += 1

    def _freshened(self) -> Room:
        """Return the room of starts, brought up to date with what changed since it was asked for."""
        if self._now is None:
            self._now = self._there.room.copy()
        if self._stale:
            for host in self._stale:
                self._now.set_free(host, self._available(host))
            self._stale.clear()
            self._beside_bounds.clear()
            self._full.clear()
        return self._now

    def _rebuild(self, changed: Reservation) -> None:
        """Count bound reservations anew; the room of starts beside others of them stays."""
        self._bounds.sort(key=lambda bound: (bound.at_s, bound.workload))
        self._full_soon.clear()
        self.version += 1
        for host in changed.placement:
            self._lasting.set_free(host, self._lasts(host))

    def _available(self, host: str) -> int:
        """Return what may start on a host, whatever bound reservations there are."""
        free_milli = self._free[host]
        left_milli = min(free_milli, self._soon[host], *self.deadlines.left(host, free_milli, self.leaving))
        return left_milli - self._aside.get(host, 0)

    def _lasts(self, host: str) -> int:
        """Return what may be promised on a host: soon, and for as long as it takes."""
        bound = self._bound_on.get(host)
        return self._soon[host] if bound is None else min(self._soon[host], self._beside(host, bound))

    def _beside(self, host: str, bound: Reservation) -> int:
        """Return what is left beside a reservation, its host's promises, and who is safe beyond it.

        A run that was told to leave for work of its own account may be safe beyond it, and be spared after all.
        """
        at_s = max(bound.at_s, self._at_s)
        there = chain(self._there.occupants[host], self._started_on.get(host, ()))
        safe_milli = sum(occupant.gpus_milli for occupant in there if occupant.safe_until_s > at_s)
        return self._size[host] - bound.placement[host] - self._promised[host] - safe_milli
