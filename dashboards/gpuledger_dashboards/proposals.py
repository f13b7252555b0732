"""From proposals to their page: who asks for what, what it would change, what was said, and who may answer. Pure."""

from collections.abc import Collection, Mapping, Sequence

from gpuledger.client.plans import Effect, Proposal, Step
from gpuledger.kernel.amounts import gpu_hours
from gpuledger_dashboards import empty
from gpuledger_dashboards.figures import UNKNOWN, hours, instant

_HOUR_S = 3600

STATES = {
    "pending": "Waiting for an answer",
    "approved": "Approved",
    "rejected": "Rejected",
    "withdrawn": "Withdrawn",
    "all": "All",
}
"""Name in the page's address -> what the reader sees."""

STEPS = {
    Step.COMMENT: ("Comment", ":material/comment:"),
    Step.APPROVE: ("Approve", ":material/check:"),
    Step.REJECT: ("Reject", ":material/close:"),
    Step.WITHDRAW: ("Take it back", ":material/undo:"),
}
"""What can be said of a proposal -> its button and picture."""


def table(found: Sequence[Proposal]) -> list[dict[str, str]]:
    """Return proposals as rows of a table."""
    return [
        {
            "Proposal": one.proposal,
            "State": one.state + " (overdue)" * one.overdue,
            "By": one.by,
            "On": instant(one.proposed_at),
            "Answer due": "no date" if one.decide_by is None else instant(one.decide_by),
            "Asks for": "; ".join(changes(one)),
        }
        for one in found
    ]


def changes(one: Proposal) -> list[str]:
    """Return what a proposal asks for, a sentence for each change."""
    since = "" if one.effective_at is None else f" from {instant(one.effective_at)} on"
    return [
        *(f"share {change['share']} for {change['account']}{since}" for change in one.shares),
        *(
            f"{hours(change['gpu_ms'])} GPU-h of {one.cluster} in {change['period']} for {change['account']}"
            for change in one.grants
        ),
        *(
            f"{hours(change['gpu_ms'])} GPU-h of {one.cluster} in {change['period']} from {change['account']}"
            f" to {change['to']}"
            for change in one.transfers
        ),
    ]


def headline(one: Proposal) -> str:
    """Return where a proposal stands in one sentence."""
    if one.decided is not None:
        return f"{one.state.capitalize()} by {one.decided.by}, {instant(one.decided.at)}: {one.decided.text}"
    if one.decide_by is None:
        return "It waits for an answer."
    return (
        f"An answer was due {instant(one.decide_by)}."
        if one.overdue
        else f"An answer is due {instant(one.decide_by)}."
    )


def effect_on_shares(effect: Effect) -> list[dict[str, str]]:
    """Return what new shares change, who gains most first."""
    rows = sorted(
        effect.shares, key=lambda row: (row.before_gpu_ms - row.after_gpu_ms, row.cluster, row.account)
    )
    return [
        {
            "Account": row.account,
            "Cluster": row.cluster,
            "Part before": _part(row.before_ppm),
            "Part after": _part(row.after_ppm),
            "GPU-h before": hours(row.before_gpu_ms),
            "GPU-h after": hours(row.after_gpu_ms),
            "Change": _signed(row.after_gpu_ms - row.before_gpu_ms),
        }
        for row in rows
    ]


def effect_on_budgets(effect: Effect) -> list[dict[str, str]]:
    """Return what grants and transfers change."""
    return [
        {
            "Account": row.account,
            "Period": row.period,
            "Left before, GPU-h": hours(row.available_gpu_ms),
            "Change": _signed(row.added_gpu_ms),
        }
        for row in effect.budgets
    ]


def simulated(simulation: Mapping[str, object]) -> list[dict[str, str]]:
    """Return what a simulation says of each account; a figure that it does not give is unknown."""
    rows = simulation.get("accounts")
    return [
        {
            "Account": str(row["account"]),
            "GPU-h before": hours(row["before_gpu_ms"]),
            "GPU-h after": hours(row["after_gpu_ms"]),
            "90 % wait at most, before": _wait(row["before_wait_p90_s"]),
            "after": _wait(row["after_wait_p90_s"]),
        }
        for row in (rows if isinstance(rows, list) else [])
    ]


def said(one: Proposal) -> list[dict[str, str]]:
    """Return what was said of a proposal, its case first, its end last."""
    rows = [(one.proposed_at, one.by, one.reason)]
    rows += [(comment.at, comment.by, comment.text) for comment in one.comments]
    if one.decided is not None:
        rows.append((one.decided.at, one.decided.by, f"{one.state}: {one.decided.text}"))
    return [{"When": instant(at), "Who": by, "What": text} for at, by, text in rows]


def may_say(one: Proposal, rights: Collection[str], name: str) -> list[Step]:
    """Return what the reader may say of a proposal; the API has the last word about whose accounts these are."""
    steps = [Step.COMMENT] if "propose" in rights else []
    if one.state != "pending":
        return steps
    if "change-budgets" in rights:
        steps += [Step.APPROVE, Step.REJECT]
    if "propose" in rights and one.by == name:
        steps.append(Step.WITHDRAW)
    return steps


def none_there(state: str) -> empty.Why:
    """Return why the list is empty."""
    return empty.Why(
        "Nobody waits for an answer." if state == "pending" else "There is no such proposal that you see.",
        "Whoever may propose can ask for other shares or for GPU-time; the lists in the address bar show decided ones.",
        'gpuledger proposal make --share institute/vision=3 --reason "why"',
    )


def csv_rows(found: Sequence[Proposal]) -> list[Mapping[str, object]]:
    """Return proposals as rows of a download."""
    return [
        {
            "proposal": one.proposal, "state": one.state, "by": one.by, "proposed_at": one.proposed_at,
            "decide_by": one.decide_by, "reason": one.reason, "asks_for": "; ".join(changes(one)),
            "decided_by": one.decided and one.decided.by, "decided_at": one.decided and one.decided.at,
        }
        for one in found
    ]  # fmt: skip


def _part(ppm: int) -> str:
    return f"{ppm / 10_000:.2f} %"


def _signed(gpu_ms: int) -> str:
    sign = "+" if gpu_ms > 0 else "-" if gpu_ms < 0 else ""
    return f"{sign}{abs(gpu_hours(gpu_ms)):,.1f}"


def _wait(seconds: object) -> str:
    if not isinstance(seconds, int):
        return UNKNOWN
    return f"{seconds / _HOUR_S:.1f} h" if seconds >= _HOUR_S else f"{seconds / 60:.0f} min"
