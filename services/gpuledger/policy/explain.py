"""Reasons in plain sentences, with the names and numbers that decided."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.contenders import Standing, Tier
from gpuledger.policy.fair_share import Turn
from gpuledger.policy.state import PendingWorkload, Reservation, ReservationKind
from gpuledger.policy.victims import Ground, Victim
from gpuledger.policy.words import gpus, gpus_text, hosts_text, moment

DECIDED_EARLIER = "an earlier cycle decided it."
"""What a cycle says of an order that it only repeats: the cycle that gave it names the comparison."""

_DIGITS = 6
_MILLION = 1_000_000


def ratio_millionths(used: int, entitled: int) -> int | None:
    """Return used / entitled in millionths, rounded exactly and half to even; None without entitlement."""
    if not entitled:
        return None
    whole, rest = divmod(used * _MILLION, entitled)
    rounds_up = 2 * rest > entitled or (2 * rest == entitled and whole % 2 == 1)
    return whole + 1 if rounds_up else whole


def ratios_millionths(used: Iterable[int], scale: int, entitled: int) -> Sequence[int | None]:
    """Return the ratio of each of many uses, times a scale, as ``ratio_millionths`` rounds it."""
    if not entitled:
        return [None for _ in used]
    common = math.gcd(_MILLION * scale, entitled)
    times, parts = _MILLION * scale // common, entitled // common
    if parts % 2:  # then none is half a millionth
        return [(2 * amount * times + parts) // (2 * parts) for amount in used]
    rounded = (divmod(amount * times + parts // 2, parts) for amount in used)
    return [nearest if rest else nearest - nearest % 2 for nearest, rest in rounded]


def ratio_text(used: int, entitled: int) -> str | None:
    """Return used / entitled with six decimals, half to even; None without entitlement."""
    millionths = ratio_millionths(used, entitled)
    return None if millionths is None else _decimals(millionths)


def starts(turn: Turn, *, free_milli: int) -> str:
    """Say why a workload starts now."""
    asked_milli = turn.workload.gpus_milli
    verb = "fits" if asked_milli == GPU_MILLI else "fit"
    fit = f"its {gpus(asked_milli)} {verb} into the {gpus_text(free_milli)} free"
    if turn.klass == "unallocated":
        return f"Starts unallocated, after all funded work: account {turn.account} is next, and {fit}."
    return f"Starts: account {_named(turn.chain[-1])} is next, and {fit}."


def waits_for_reservation(turn: Turn, kept: Reservation, *, free_milli: int, names_hosts: bool) -> str:
    """Say which GPUs are kept for a workload, and from when on it may have them."""
    where = gpus(turn.workload.gpus_milli) + (f" on {hosts_text(kept.placement)}" if names_hosts else "")
    if kept.kind is ReservationKind.PROMISE:
        return f"Waits for {where}, promised from {moment(kept.at_s)} on: the runs there were told to leave."
    asked_milli = turn.workload.gpus_milli
    return (
        f"Waits at the head of its size class: account {_named(turn.chain[-1])} is next, but of the "
        f"{gpus(asked_milli)} asked for, {_lack(asked_milli, free_milli)}. Reserved: {where}, from "
        f"{moment(kept.at_s)} on at the latest, when the runs there are past their minimum runtime."
    )


def waits_at_head(
    turn: Turn,
    other: Reservation | None,
    *,
    free_milli: int,
    awaited: Turn | None = None,
    exceeded: tuple[Standing, Standing] | None = None,
    gives_dates: bool = True,
) -> str:
    """Say what the first of its size class waits for when nothing could be reserved for it.

    Args:
        turn: It.
        other: The reservation of its class, which is another's.
        free_milli: What is free.
        awaited: Who comes first of all and has to get a reservation before anybody else does.
        exceeded: Its side and one that waits, where that is less far beyond its entitlement.
        gives_dates: Whether the first of a class gets a reservation at all.
    """
    reason = (
        f"Waits at the head of its size class: account {_named(turn.chain[-1])} is next, but of the "
        f"{gpus(turn.workload.gpus_milli)} asked for, {_lack(turn.workload.gpus_milli, free_milli)}."
    )
    if other is not None:
        return f"{reason} The reservation of its class is {other.workload}'s until that has started."
    if exceeded is not None:
        mine, theirs = exceeded
        return (
            f"{reason} Nothing is reserved for it: {_named(mine)} is further beyond its entitlement than "
            f"{_named(theirs)}, which waits, too."
        )
    if not gives_dates:
        return f"{reason} Nobody gets a date: the policy makes no reservations."
    if awaited is None or awaited is turn:
        return f"{reason} What is reserved for others leaves no hosts to reserve."
    return (
        f"{reason} {awaited.workload.workload} of account {awaited.account} comes first: what is reserved for others "
        "leaves no hosts for it, and until they have started nobody else gets a reservation."
    )


class Kept(NamedTuple):
    """A reservation, as those are told of it in whose way it is.

    Args:
        workload: For whom.
        at_s: From when on.
    """

    workload: str
    at_s: int


def waits_beside(position: int, asked_milli: int, other: Kept) -> str:
    """Say that a workload would start but for what is reserved for another."""
    return (
        f"Waits at place {position}: its {gpus(asked_milli)} would fit, but are reserved for "
        f"{other.workload} from {moment(other.at_s)} on, and its minimum runtime would end later."
    )


class Side(NamedTuple):
    """How an account stood in a comparison, as it is told.

    Args:
        account: The path.
        ratio_ppm: Its ratio in millionths; None without entitlement.
        is_below: Whether it ran below its floor.
    """

    account: str
    ratio_ppm: int | None
    is_below: bool


class Ahead:
    """The head of a size class, as all who wait behind it are told of it.

    Args:
        workload: It.
        account: The leaf that it counts at.
        missing_milli: What it is missing.
        sides: How its accounts stood, from its root down to its leaf.
    """

    __slots__ = ("_parting", "_said", "account", "missing_milli", "sides", "workload")

    def __init__(self, workload: str, account: str, missing_milli: int, sides: tuple[Side, ...]) -> None:
        self.workload = workload
        self.account = account
        self.missing_milli = missing_milli
        self.sides = sides
        self._said = f"{workload} of account {account} is ahead, for which {_missing(missing_milli)}"
        self._parting: dict[str, tuple[int, str, str]] = {}
        """By leaf: at which level its path and the head's part, the path there, and how the head's side stands."""

    @classmethod
    def of(cls, head: Turn, missing_milli: int) -> "Ahead":
        """Return a turn that is the head of its size class."""
        sides = tuple(_side(standing) for standing in head.chain)
        return cls(head.workload.workload, head.account, missing_milli, sides)

    def level(self, account: str) -> int:
        """Return which comparison put the head before a leaf's work, counted from the root.

        It is the one where their paths part; the last of the leaf where they do not.
        """
        return self._part(account)[0]

    def told(self, position: int, account: str, ratio_ppm: int | None, *, is_below: bool) -> str:
        """Say who is ahead of a workload, why, and what that one waits for.

        Args:
            position: Its place in the order.
            account: The leaf that it counts at.
            ratio_ppm: How its side stands where the paths part.
            is_below: Likewise.
        """
        _, path, named = self._part(account)
        theirs = _told(Side(path, ratio_ppm, is_below))
        if named:
            return f"Waits at place {position}: {self._said}; {named} comes before {theirs}."
        return (
            f"Waits at place {position}: {self._said}; both are of account {theirs}, "
            "where priority and then submit time decide."
        )

    def _part(self, account: str) -> tuple[int, str, str]:
        if account not in self._parting:
            self._parting[account] = self._parted(list(lineage(account)))
        return self._parting[account]

    def _parted(self, paths: Sequence[str]) -> tuple[int, str, str]:
        for level, (side, path) in enumerate(zip(self.sides, paths, strict=False)):
            if side.account != path:
                return level, path, _told(side)
        return len(paths) - 1, paths[-1], ""


def waits_for_free(position: int, account: str, asked_milli: int, *, free_milli: int) -> str:
    """Say what unallocated work waits for: it takes what is free, and nobody leaves for it."""
    return (
        f"Waits at place {position} for free GPUs, as unallocated work of account {account}: "
        f"of the {gpus(asked_milli)} asked for, {_lack(asked_milli, free_milli)}."
    )


def leaves(victim: Victim) -> str:
    """Say for whom a run has to leave, and by which comparison."""
    asker, run = victim.asker, victim.run
    if asker is None:
        return "Leaves its host, which is being emptied: nothing protects the run any more."
    gang, whose = asker.workload, f"of account {asker.account}"
    told = f"Leaves for {gang.workload} {whose}, which asks for {gpus(gang.gpus_milli)}"
    match victim.ground:
        case Ground.UNALLOCATED:
            return f"{told}: unallocated work makes room for funded work."
        case Ground.RATIO:
            assert victim.theirs is not None and victim.mine is not None  # noqa: S101, PT018 - of this ground
            return (
                f"{told}: {_named(victim.theirs)} is further beyond its entitlement than {_named(victim.mine)}, "
                f"and the minimum runtime of the run is over."
            )
        case Ground.ISSUE:
            assert victim.theirs is not None and victim.mine is not None  # noqa: S101, PT018 - of this ground
            return (
                f"{told}: {victim.mine.account} runs less than it is issued, {victim.theirs.account} runs more, "
                f"and the minimum runtime of the run is over."
            )
        case Ground.OWN:
            return f"{told}: of the same account, with priority {gang.priority} over {run.priority}."
        case Ground.RESERVED:
            return f"{told}: reserved at the head of the queue, until the minimum runtime of what runs here was over."
        case Ground.PASSED_ON:
            return f"{told}: who had reserved its GPUs started elsewhere, and they were promised on."
        case Ground.EARLIER | Ground.DRAINING:
            return f"{told}: {DECIDED_EARLIER}"
        case _:
            assert_never(victim.ground)


def figures(victim: Victim) -> dict[str, int]:
    """Return the figures behind a preemption."""
    numbers: dict[str, int] = {}
    for name, side in (("ratio_ppm", victim.theirs), ("asker_ratio_ppm", victim.mine)):
        ratio = None if side is None else ratio_millionths(side.used, side.entitled)
        if ratio is not None:
            numbers[name] = ratio
    if victim.ground is Ground.OWN and victim.asker is not None:
        numbers |= {"priority": victim.run.priority, "asker_priority": victim.asker.workload.priority}
    return numbers


def waits_for_other_hosts(workload: PendingWorkload, *, healthy_milli: int) -> str:
    """Say that a workload is larger than the cluster, or that no hosts here can hold it together."""
    reason = f"Waits outside the queue: account {workload.account} asks for {gpus(workload.gpus_milli)}"
    if workload.gpus_milli > healthy_milli:
        missing = _missing(workload.gpus_milli - healthy_milli)
        return f"{reason}, the cluster has {gpus_text(healthy_milli)} healthy, {missing}."
    model = "of one model" if workload.gpu_model is None else f"of model {workload.gpu_model}"
    return f"{reason}, and no hosts {model} and one size can hold them, however empty."


def waits_until_eligible(workload: PendingWorkload, *, at_s: int) -> str:
    """Say that a workload may not start yet."""
    return (
        f"Waits outside the queue: it becomes eligible in {workload.eligible_at_s - at_s} s "
        f"(account {workload.account}, {gpus(workload.gpus_milli)})."
    )


def _named(standing: Standing) -> str:
    return _told(_side(standing))


def _side(standing: Standing) -> Side:
    ratio_ppm = ratio_millionths(standing.used, standing.entitled)
    return Side(standing.account, ratio_ppm, standing.tier is Tier.BELOW_FLOOR)


def _told(side: Side) -> str:
    figures = "no entitlement yet" if side.ratio_ppm is None else f"ratio {_decimals(side.ratio_ppm)}"
    return f"{side.account} ({figures}{', running below its floor' if side.is_below else ''})"


def _decimals(millionths: int) -> str:
    return f"{millionths // _MILLION}.{millionths % _MILLION:0{_DIGITS}d}"


def _missing(gpus_milli: int) -> str:
    return f"{gpus(gpus_milli)} {'is' if gpus_milli == GPU_MILLI else 'are'} missing"


def _lack(asked_milli: int, free_milli: int) -> str:
    if asked_milli > free_milli:
        return _missing(asked_milli - free_milli)
    return f"the {gpus_text(free_milli)} free are reserved or on hosts that cannot hold them together"
