"""An answer about a workload as lines of text, the same in the terminal, on a page and in a mail. Pure."""

from collections.abc import Iterator

from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.policy.counterfactual import Counterfactual, Obstacle
from gpuledger.policy.story import State, Story
from gpuledger.policy.trials import Outcome
from gpuledger.policy.waiting import Decided
from gpuledger.policy.why import Ahead, Change, Why
from gpuledger.policy.words import gpus, hours, moment

_SHOWN = 5
"""Names, bursts and siblings that a line or list shows before it counts the rest."""
_KINDS = {
    Obstacle.ELIGIBILITY: "when it is eligible",
    Obstacle.RUNS: "runs that hold its GPUs",
    Obstacle.USE: "less use of its account",
    Obstacle.AHEAD: "workloads that come before it",
    Obstacle.GPUS: "GPUs that are missing",
}
"""What was not looked for."""


def lines_of(answer: Why, *, what_if: bool = False, is_decision_kept: bool = False) -> list[str]:
    """Return the whole answer, line by line.

    Args:
        answer: The answer.
        what_if: Whether it was asked what would let the workload start.
        is_decision_kept: Whether what was decided about it is kept from the reader, so that none says nothing.
    """
    found = [*_head(answer.story), "", *_happenings(answer.story), *_superseded(answer.story)]
    found += ["", _cost(answer.story)]
    if answer.decided is not None:
        is_free = answer.story.minimum_runtime_s == 0 or answer.unpaid is not None
        found += ["", *_decision(answer.decided, is_free=is_free)]
    elif answer.story.state is State.WAITS and not is_decision_kept:
        found += [
            "",
            f"No cycle has decided about it yet: gpuledger cycle --cluster {answer.story.cluster} runs one.",
        ]
    if answer.unpaid is not None:
        found += ["", f"Would run unallocated, and waits as such work does: {answer.unpaid}."]
    if answer.ahead is not None:
        found += ["", *_ahead(answer.ahead, answer.story.at_s)]
    elif what_if and not is_decision_kept:
        found += ["", "What would let it start is looked for (--what-if) only while it waits."]
    return found


def _head(story: Story) -> Iterator[str]:
    state = {
        State.NOT_ELIGIBLE: "may not start yet",
        State.WAITS: "waits",
        State.RUNS: "runs",
        State.OVER: "is over",
    }[story.state]
    yield (
        f"{story.workload} on {story.cluster}, {gpus(story.gpus_milli)} of {story.account}: {state} "
        f"at {moment(story.at_s)}"
    )


def _happenings(story: Story) -> Iterator[str]:
    for happening in story.happenings:
        run = f"[{happening.run}] " if happening.run else ""
        estimated = " (estimated: the last evidence of life)" if happening.is_estimated else ""
        yield f"{moment(happening.at_s)}  {run}{happening.text}{estimated}"


def _superseded(story: Story) -> Iterator[str]:
    """Tell what was said too and does not count, and why: the loser of two facts is kept and shown."""
    if story.superseded:
        yield ""
        yield "Told otherwise, too:"
    for one in story.superseded:
        yield f"  {f'[{one.run}] ' if one.run else ''}{one.line()}"


def _cost(story: Story) -> str:
    cost = story.cost
    parts = [f"{hours(cost.charged_gpu_ms)} charged", f"{hours(cost.unallocated_gpu_ms)} unallocated, free"]
    if cost.credited_gpu_ms:
        parts.append(f"{hours(cost.credited_gpu_ms)} given back")
    if story.open_gpu_ms:
        parts.append(f"{hours(story.open_gpu_ms)} since the last tick")
    return f"Cost so far: {', '.join(parts)}."


def _decision(decided: Decided, *, is_free: bool) -> Iterator[str]:
    yield f"Cycle of {moment(decided.at_s)}: {decided.action}. {decided.reason}"
    if decided.starts_by_s is not None and decided.certainty is not None:
        yield f"Starts by {moment(decided.starts_by_s)} ({decided.certainty.value}: GPUs are kept for it)."
        yield from decided.doubts
    if not decided.chain:
        return
    yield "From the root to its account, (used + open holds) / (entitled + cap ahead), lowest served first:"
    for depth, level in enumerate(decided.chain, start=1):
        before = [f"{account} ({ratio})" for account, ratio in level.before[:_SHOWN]]
        if len(level.before) > _SHOWN:
            before.append(f"{len(level.before) - _SHOWN} more")
        after = f"lower: {', '.join(before)}" if before else "the lowest of its siblings that ask for GPUs"
        if not level.share_ppm:
            after = "with a share of 0, which comes last" + (f": after {', '.join(before)}" if before else "")
        par = f", and {hours(level.par_gpu_ms)} beside both at par" if level.par_gpu_ms else ""
        yield (
            f"{'  ' * depth}{level.account}: {level.ratio or 'entitled to nothing'} "
            f"({hours(level.used_gpu_ms)} of {hours(level.entitled_gpu_ms)}{par}), {after}"
        )
    if is_free or not all(level.share_ppm for level in decided.chain):
        yield "That orders funded work. Unallocated work comes after it, by least unallocated use / share."


def _ahead(ahead: Ahead, at_s: int) -> Iterator[str]:
    for change in ahead.changes:
        yield f"{_outcome(change.found)} if {_condition(change.found)}{_expected(change, at_s)}."
        for burst in change.bursts[:_SHOWN]:
            yield (
                f"  {hours(burst.gpu_ms)} used {moment(burst.from_s)} to {moment(burst.to_s)}: forgotten from "
                f"{moment(burst.forgotten_from_s)} to {moment(burst.forgotten_by_s)}"
            )
        if len(change.bursts) > _SHOWN:
            yield f"  and {len(change.bursts) - _SHOWN} later bursts"
    if ahead.left_out:
        kinds = ", ".join(_KINDS[kind] for kind in ahead.left_out)
        yield f"Not looked for to the end, because the queue is too long for so many cycles: {kinds}."
    if ahead.starts_at_s is not None:
        yield f"If nobody does anything, it starts at {moment(ahead.starts_at_s)} (estimate)."
    else:
        seen = moment(ahead.seen_until_s)
        yield f"If nobody does anything, it does not start before {seen}; nothing is known of after that."


def _outcome(found: Counterfactual) -> str:
    start = (
        "Starts now"
        if found.outcome is Outcome.START
        else "Is promised GPUs now, and starts after the grace,"
    )
    return f"Once it is eligible: {start[0].lower()}{start[1:]}" if found.eligible else start


def _condition(found: Counterfactual) -> str:
    match found.obstacle:
        case Obstacle.ELIGIBILITY:
            return "it is eligible"
        case Obstacle.RUNS:
            verb = "ends" if len(found.runs) == 1 else "end"
            return f"{_names([f'{run.workload}/{run.run}' for run in found.runs], 'run')} {verb}"
        case Obstacle.USE:
            return f"the window's use of {found.account} falls by {hours(found.gpu_ms)}"
        case Obstacle.AHEAD:
            verb = "does" if len(found.workloads) == 1 else "do"
            return f"{_names(list(found.workloads), 'workload')} {verb} not come before it"
        case Obstacle.GPUS:
            model = f" of model {found.gpu_model}" if found.gpu_model else ""
            where = " on one host" if found.hosts == 1 else f" on {found.hosts} hosts"
            verb = "is" if found.gpus_milli == GPU_MILLI else "are"
            return f"{gpus(found.gpus_milli)} more{model} {verb} free{where if found.gpu_model else ''}"


def _names(names: list[str], what: str) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}{'' if len(names) == 1 else 's'} {', '.join(names[:_SHOWN])}{more}"


def _expected(change: Change, at_s: int) -> str:
    if change.expected_s is None or change.certainty is None:
        return ""
    whose = "its" if len(change.found.runs) == 1 else "their"
    if change.found.obstacle is Obstacle.RUNS and change.expected_s <= at_s:
        return f", out of {whose} protection already"
    expected = {
        Obstacle.RUNS: f"out of {whose} protection",
        Obstacle.USE: "forgotten, without new use,",
    }.get(change.found.obstacle, "expected")
    return f", {expected} at {moment(change.expected_s)} ({change.certainty.value})"
