"""How pods end: since when, and why, as far as the pod itself, or whoever saw it go, says so."""

from dataclasses import dataclass

from gpuledger.sources.kubernetes.objects import Pod, PodStatus
from gpuledger.sources.kubernetes.reading import Seen, at_s, condition, written_s
from gpuledger.sources.values import Odd

TERMINAL = frozenset(("Succeeded", "Failed"))
DELETION = "deleted"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a pod.

    Args:
        at_s: When, in seconds since the epoch.
        reason: Why, in the words of Kubernetes.
        exit: The first exit code that is not 0, else 0; where it is known.
        estimated: True when nobody saw it end.
    """

    at_s: int
    reason: str
    exit: str | None
    estimated: bool | None


def end_of(pod: Pod, seen: Seen) -> End | Odd | None:
    """Return how the pod ended, what is odd when nobody says when, or None while it holds its GPUs."""
    status = pod.status or PodStatus()
    is_terminal, is_gone = status.phase in TERMINAL, seen.is_gone
    if not (is_terminal or is_gone):
        return None
    reason = _reason(status, is_terminal=is_terminal)
    finished_s, exit_code = _finished(status, needs_all=not is_terminal)
    if finished_s is not None:
        return End(finished_s, reason, exit_code, None)
    if is_gone and seen.observed_s is not None:
        return End(seen.observed_s, reason, None, seen.is_guess)
    evidence = (
        _last_change(status) if is_terminal else None,
        at_s(pod.metadata.deletion_timestamp),
        seen.observed_s,
        written_s(pod.metadata),
    )
    for last_s in evidence:
        if last_s is not None:
            return End(last_s, reason, None, estimated=True)
    return "ended-at-unknown-time", "status: the pod is over, and nothing says since when; its run stays open"


def _finished(status: PodStatus, *, needs_all: bool) -> tuple[int | None, str | None]:
    """Return when the last container ended, as far as known, and the first exit code that is not 0."""
    statuses = status.container_statuses or ()
    ended = [one.state.terminated for one in statuses if one.state and one.state.terminated]
    times = [at for one in ended if (at := at_s(one.finished_at)) is not None]
    if not times or (needs_all and len(times) < len(statuses)):
        return None, None
    codes = [one.exit_code for one in ended if one.exit_code is not None]
    return max(times), str(next((code for code in codes if code), 0)) if codes else None


def _reason(status: PodStatus, *, is_terminal: bool) -> str:
    """Return why the pod ended, in the words of Kubernetes, the most telling first."""
    if status.phase == "Succeeded":
        return status.phase
    if status.reason:
        return status.reason
    disrupted = condition(status.conditions, "DisruptionTarget")
    if disrupted is not None and disrupted.status == "True" and disrupted.reason:
        return disrupted.reason
    for one in status.container_statuses or ():
        ended = one.state.terminated if one.state else None
        if ended is not None and ended.reason and ended.exit_code:
            return ended.reason
    return status.phase if is_terminal else DELETION


def _last_change(status: PodStatus) -> int | None:
    """Return the newest change of a condition that says that the pod does not run any more."""
    kinds = ("Ready", "ContainersReady", "DisruptionTarget")
    found = [condition(status.conditions, kind) for kind in kinds]
    times = [at for one in found if one is not None and (at := at_s(one.last_transition_time)) is not None]
    return max(times, default=None)
