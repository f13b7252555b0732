"""What was asked for, what was changed of that, and when the workload waits, in words: a part of its story. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuledger.kernel.clock import iso
from gpuledger.ledger.mapping import Understood
from gpuledger.ledger.requests import Request
from gpuledger.ledger.segments import History
from gpuledger.policy.words import duration, gpus, moment

AGAIN = "waits again"
"""What begins when a run stops: told after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One thing that happened.

    Args:
        at_s: When.
        what: A word for it, such as ``started``.
        text: One sentence, names and numbers in it.
        run: The run that it happened to.
        is_estimated: Whether the time is the last evidence of life, not the true end.
    """

    at_s: int
    what: str
    text: str
    run: str | None = None
    is_estimated: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "at": moment(self.at_s),
            "what": self.what,
            "text": self.text,
            "run": self.run,
            "estimated": self.is_estimated,
        }


def requests_told(requests: Sequence[Request], history: History) -> Iterator[Happening]:
    """Yield what was asked for as time went by, and when the workload waits.

    Args:
        requests: The submission and what was changed of it; nothing where nobody submitted the workload.
        history: What follows from its facts.
    """
    if not requests:
        return
    first, *later = requests
    asked = first.understood
    text = f"Submitted for {asked.meaning.account}: {', '.join(_wishes(asked))}."
    yield Happening(at_s=asked.at_s, what="submitted", text=text)
    for request in later:
        if words := list(_changes(request)):
            yield Happening(at_s=request.from_s, what="updated", text=f"Changed: {', '.join(words)}.")
    for wait in history.waits:
        if wait.began_s is not None:
            continue  # it waits on: what was changed stands above
        again = wait.from_s > asked.at_s and any(s.from_s < wait.from_s for s in history.segments)
        if again:
            yield Happening(at_s=wait.from_s, what=AGAIN, text="Waits again.")
        elif wait.from_s != asked.at_s:
            text = "Eligible: it may start from here on."
            yield Happening(at_s=wait.from_s, what="eligible", text=text)


def _wishes(asked: Understood) -> Iterable[str]:
    submitted = asked.asked
    yield gpus(submitted.gpus_milli)
    if submitted.gpu_model:
        yield f"model {submitted.gpu_model}"
    yield _minimum(asked)
    if submitted.time_limit_s:
        yield f"limit {duration(submitted.time_limit_s)}"
    if submitted.priority:
        yield f"priority {submitted.priority} within its account"


def _minimum(asked: Understood) -> str:
    if asked.minimum_runtime_s:
        return f"minimum runtime {duration(asked.minimum_runtime_s)}"
    return "minimum runtime 0, which runs unallocated"


def _changes(request: Request) -> Iterator[str]:
    """Yield what is another from a moment on, in words."""
    for key in request.changed:
        words = _IN_WORDS.get(key)
        yield (
            f"{key} {getattr(request.understood.asked, key)}" if words is None else words(request.understood)
        )


_IN_WORDS: Mapping[str, Callable[[Understood], str]] = {
    "account": lambda of: f"{of.meaning.account} pays",
    "gpus_milli": lambda of: f"asks for {gpus(of.asked.gpus_milli)}",
    "gpu_model": lambda of: f"model {of.asked.gpu_model}",
    "minimum_runtime_s": _minimum,
    "time_limit_s": lambda of: (
        f"limit {duration(of.asked.time_limit_s)}" if of.asked.time_limit_s else "no limit"
    ),
    "priority": lambda of: f"priority {of.asked.priority} within its account",
    "eligible_at": lambda of: (
        f"may start from {iso(of.asked.eligible_at)} on" if of.asked.eligible_at else "may start"
    ),
    "labels": lambda of: ", ".join(
        f"{name} {value}" for name, value in sorted((of.asked.labels or {}).items())
    ),
}
"""A key of a request -> how it is told that it is another."""
