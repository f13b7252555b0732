"""Reasons in plain sentences, with the names and numbers that decided."""

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.fair_share import Standing, Tier, Turn
from gpuledger.policy.state import PendingWorkload

_DIGITS = 6
_MILLION = 1_000_000


def ratio_millionths(used: int, entitled: int) -> int | None:
    """Return used / entitled in millionths, rounded exactly and half to even; None without entitlement."""
    if not entitled:
        return None
    whole, rest = divmod(used * _MILLION, entitled)
    rounds_up = 2 * rest > entitled or (2 * rest == entitled and whole % 2 == 1)
    return whole + 1 if rounds_up else whole


def ratio_text(used: int, entitled: int) -> str | None:
    """Return used / entitled with six decimals, half to even; None without entitlement."""
    millionths = ratio_millionths(used, entitled)
    return None if millionths is None else f"{millionths // _MILLION}.{millionths % _MILLION:0{_DIGITS}d}"


def gpus_text(gpus_milli: int) -> str:
    """Return GPUs for people: whole ones without decimals, others with three."""
    sign, amount = ("-", -gpus_milli) if gpus_milli < 0 else ("", gpus_milli)
    whole, milli = divmod(amount, GPU_MILLI)
    return f"{sign}{whole}.{milli:03d}" if milli else f"{sign}{whole}"


def starts(turn: Turn, *, free_milli: int) -> str:
    """Say why a workload starts now."""
    asked_milli = turn.workload.gpus_milli
    verb = "fits" if asked_milli == GPU_MILLI else "fit"
    fit = f"its {_gpus(asked_milli)} {verb} into the {gpus_text(free_milli)} free"
    if turn.klass == "unallocated":
        return (
            f"Starts unallocated, after all funded work: account {turn.chain[-1].account} is next, and {fit}."
        )
    return f"Starts: account {_named(turn.chain[-1])} is next, and {fit}."


def waits_at_head(turn: Turn, *, free_milli: int, reclaimable_milli: int) -> str:
    """Say what the workload at the head of the queue waits for."""
    account = _named(turn.chain[-1]) if turn.klass == "allocated" else turn.chain[-1].account
    asked_milli = turn.workload.gpus_milli
    reason = (
        f"Waits at the head of the queue: account {account} is next, but of the {_gpus(asked_milli)} "
        f"asked for, {_missing(asked_milli - free_milli)}."
    )
    if reclaimable_milli:
        reason += (
            f" Unallocated runs, and runs past their protection in accounts above their entitlement, "
            f"hold {_gpus(reclaimable_milli)}."
        )
    return reason


def waits_behind(turn: Turn, head: Turn, *, head_missing_milli: int) -> str:
    """Say who is ahead of a workload, why, and what that one waits for."""
    return (
        f"Waits at place {turn.position}: {head.workload.workload} of account {head.chain[-1].account} "
        f"is ahead, for which {_missing(head_missing_milli)}; {_preferred(head, turn)}."
    )


def waits_for_more_hosts(workload: PendingWorkload, *, healthy_milli: int) -> str:
    """Say that a workload is larger than the cluster."""
    missing = _missing(workload.gpus_milli - healthy_milli)
    return (
        f"Waits outside the queue: account {workload.account} asks for {_gpus(workload.gpus_milli)}, "
        f"the cluster has {gpus_text(healthy_milli)} healthy, {missing}."
    )


def waits_until_eligible(workload: PendingWorkload, *, at_s: int) -> str:
    """Say that a workload may not start yet."""
    return (
        f"Waits outside the queue: it becomes eligible in {workload.eligible_at_s - at_s} s "
        f"(account {workload.account}, {_gpus(workload.gpus_milli)})."
    )


def _preferred(first: Turn, other: Turn) -> str:
    """Say which comparison put the first turn before the other: the one where their paths part."""
    if first.klass != other.klass:
        return f"funded work comes before the unallocated work of account {other.chain[-1].account}"
    for mine, theirs in zip(first.chain, other.chain, strict=False):
        if mine.account == theirs.account:
            continue
        if first.klass == "unallocated":
            return f"{mine.account} comes before {theirs.account} by least unallocated use per share"
        return f"{_named(mine)} comes before {_named(theirs)}"
    return f"both are of account {_named(other.chain[-1])}, where priority and then submit time decide"


def _named(standing: Standing) -> str:
    ratio = ratio_text(standing.used, standing.entitled)
    figures = "no entitlement yet" if ratio is None else f"ratio {ratio}"
    if standing.tier is Tier.BELOW_FLOOR:
        figures += ", running below its floor"
    return f"{standing.account} ({figures})"


def _gpus(gpus_milli: int) -> str:
    return f"{gpus_text(gpus_milli)} GPU" + ("" if gpus_milli == GPU_MILLI else "s")


def _missing(gpus_milli: int) -> str:
    return f"{_gpus(gpus_milli)} {'is' if gpus_milli == GPU_MILLI else 'are'} missing"
