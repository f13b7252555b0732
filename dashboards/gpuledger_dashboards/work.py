"""From a workload's story to what its page shows: spans on a line of time, sentences, the way from the root. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.client.stories import Happening, Level, Workload
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import hours, instant

WAITED, ALLOCATED, FREE, SUSPENDED = "Waited", "Ran, paid for", "Ran, free", "Suspended"

_BEGIN_WAITING = frozenset({"submitted", "eligible", "waits again"})
_END = frozenset({"preempted", "requeued", "ended"})
_STATES = {
    "waits": "waits",
    "not eligible": "may not start yet",
    "runs": "runs",
    "over": "is over",
}
_PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a workload's life.

    Args:
        what: What it did.
        start: When it began.
        end: When it ended; the instant of the answer for one that goes on.
        text: The same in words.
    """

    what: str
    start: str
    end: str
    text: str


@dataclass(frozen=True, slots=True)
class _Open:
    what: str
    start: str


def headline(told: Workload) -> str:
    """Return the story in one sentence: what it is, whose, and how it stands."""
    gpus = f"{told.gpus_milli / GPU_MILLI:g} GPU{'' if told.gpus_milli == GPU_MILLI else 's'}"
    count = sum(event.what == _PREEMPTED for event in told.events)
    again = f", after it was preempted {'once' if count == 1 else f'{count} times'}" if count else ""
    return f"{told.workload} on {told.cluster}, {gpus} of {told.account}, {_STATES.get(told.state, told.state)}{again}."


def spans(told: Workload) -> list[Span]:
    """Return what the workload did and when, in order of time; what goes on ends at the instant of the answer."""
    found: list[Span] = []
    current: _Open | None = None

    def close(at: str) -> None:
        nonlocal current
        if current is not None and current.start < at:
            found.append(
                Span(
                    current.what,
                    current.start,
                    at,
                    f"{current.what}, {instant(current.start)} to {instant(at)}",
                )
            )
        current = None

    for event in told.events:
        begun = _begun(event, current)
        if begun is not None or event.what in _END:
            close(event.at)
            current = None if begun is None else _Open(begun, event.at)
    if told.state != "over":
        close(told.at)
    return found


def _begun(event: Happening, current: _Open | None) -> str | None:
    """Return what begins with an event, if anything does."""
    if event.what in _BEGIN_WAITING:
        return WAITED
    if event.what in ("started", "class changed"):
        return FREE if "unallocated" in event.text else ALLOCATED
    if event.what == "suspended":
        return SUSPENDED
    if event.what == "resumed":
        return FREE if current is not None and current.what == FREE else ALLOCATED
    return None


def preemptions(told: Workload) -> list[str]:
    """Return when and for whom it was preempted, a sentence each."""
    return [f"{instant(event.at)}: {event.text}" for event in told.events if event.what == _PREEMPTED]


def events(told: Workload) -> list[dict[str, str]]:
    """Return the story as rows of a table."""
    return [
        {
            "When": instant(event.at),
            "Run": event.run or "-",
            "What": event.text + (" (estimated)" if event.estimated else ""),
        }
        for event in told.events
    ]


def csv_rows(told: Workload) -> list[Mapping[str, object]]:
    """Return the story as rows of a download."""
    return [
        {
            "at": event.at,
            "what": event.what,
            "run": event.run,
            "text": event.text,
            "estimated": event.estimated,
        }
        for event in told.events
    ]


def costs(told: Workload) -> list[tuple[str, str, str]]:
    """Return (title, GPU-hours, what it means) of what is booked for it."""
    cost = told.cost
    found = [
        ("Charged", cost.charged_gpu_ms, "paid by the account's budget"),
        ("Free", cost.unallocated_gpu_ms, "ran unallocated: not charged"),
        ("Given back", cost.credited_gpu_ms, "credited, such as after a host failed"),
        ("Not booked yet", cost.not_booked_yet_gpu_ms, "used since the books' last hour"),
    ]
    return [(title, f"{hours(amount)} GPU-h", help_) for title, amount, help_ in found]


def chain(levels: Sequence[Level]) -> list[dict[str, str]]:
    """Return the way from the root to the account: where each stood among its siblings in the cycle."""
    return [
        {
            "Account": level.account,
            "Served": "entitled to nothing" if level.ratio is None else level.ratio,
            "Used, GPU-h": hours(level.used_gpu_ms),
            "Entitled, GPU-h": hours(level.entitled_gpu_ms),
            "Siblings served less": str(len(level.before)) if level.before else "none",
        }
        for level in levels
    ]


def nothing_asked() -> empty.Why:
    """Return what to do on a page that was asked nothing yet."""
    return empty.Why(
        "Which workload?",
        "Write its id as the scheduler writes it, such as the number that sbatch printed. The page's address then "
        "leads to its story, and can be sent to somebody.",
    )
