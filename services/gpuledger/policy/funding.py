"""Whether work can be paid for: the hold that protects it, and all of it up to its end, before it is submitted.

The answer for hard accounts is the one that an admission gives: the same arithmetic, asked without taking anything.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.amounts import WEIGHT_ONE, gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant, seconds
from gpuledger.kernel.errors import NotFound
from gpuledger.ledger import queries
from gpuledger.ledger.as_of import seq_of, vector_of
from gpuledger.ledger.balances import BalanceQuery, balance
from gpuledger.ledger.periods import is_opened
from gpuledger.ledger.purse import Need, Purse
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.policy.words import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """Whether a stretch of time of some GPUs can be paid for.

    Args:
        gpu_ms: What it takes, in weighted units.
        fits: Whether that is there; None where nobody can know it: grants of a period are still to come.
        reason: One sentence, with the account that binds.
    """

    gpu_ms: int
    fits: bool | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "gpu_ms": self.gpu_ms,
            "gpu_hours": str(gpu_hours(self.gpu_ms)),
            "fits": self.fits,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Funding:
    """What of some work can be paid for.

    Args:
        is_hard: Whether the account, or one above it, is hard: then a hold that does not fit is refused.
        hold: The hold of its minimum runtime.
        whole: All of it, where its runtime was told.
    """

    is_hard: bool
    hold: Cover
    whole: Cover | None

    def as_json(self) -> dict[str, Any]:
        """Return it under its published keys."""
        return {
            "hard": self.is_hard,
            "hold": self.hold.as_json(),
            "whole": None if self.whole is None else self.whole.as_json(),
        }


class Work(NamedTuple):
    """Work that somebody thinks of.

    Args:
        starts_s: When it would start.
        runtime_s: How long it would run in all; None where nobody said.
    """

    account: str
    gpus_milli: int
    gpu_model: str | None
    starts_s: int
    minimum_runtime_s: int
    runtime_s: int | None = None


class Seen(NamedTuple):
    """What is read, and as of when.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        now_s: The present.
        calendar: The organisation's days.
        as_of: Recorded time: what the books said then; now unless given.
    """

    reader: Reader
    cluster: str
    now_s: int
    calendar: Calendar
    as_of: dt.datetime | None = None


def funding(seen: Seen, work: Work) -> Funding:
    """Say what of some work its account can pay for, with what is set aside already taken off."""
    vector = vector_of(seen.reader, seen.as_of)
    hard = queries.hard_accounts(seen.reader, instant(seen.now_s), seq_of(vector, ORG_BOOK)) & set(
        lineage(work.account)
    )

    def cover(for_s: int) -> Cover:
        span = (work.starts_s, work.starts_s + for_s)
        need = Need(work.account, work.gpus_milli, work.gpu_model, span)
        if seen.as_of is not None and not seq_of(vector, seen.cluster):
            amount = sum(part for _, part in _parts(seen, need))
            return Cover(gpu_ms=amount, fits=None, reason=_nothing_booked(seen.cluster, seen.as_of))
        return _of_hard(seen, need) if hard else _of_soft(seen, need)

    return Funding(
        is_hard=bool(hard),
        hold=cover(work.minimum_runtime_s),
        whole=None if work.runtime_s is None else cover(work.runtime_s),
    )


def _of_hard(seen: Seen, need: Need) -> Cover:
    amount = sum(part for _, part in _parts(seen, need))
    purse = Purse(seen.reader, seen.cluster, seen.now_s, seen.calendar, as_of=seen.as_of)
    lacking = purse.shortfall(need)
    fits = f"{gpu_hours(amount)} GPU-hours fit into what {need.account} and the limits above it have left"
    return Cover(gpu_ms=amount, fits=lacking is None, reason=f"{lacking or fits}.")


def _of_soft(seen: Seen, need: Need) -> Cover:
    """Say what is left, and how far it would be overdrawn: a soft account's work goes on either way."""
    amount, short, unopened = 0, list[str](), list[str]()
    for period, part in _parts(seen, need):
        amount += part
        query = BalanceQuery(cluster=seen.cluster, period=period, as_of=seen.as_of)
        try:
            found = balance(seen.reader, need.account, query, seen.now_s, seen.calendar)
        except NotFound:
            if _is_to_come(seen, period):
                unopened.append(period)
            else:
                short.append(f"{need.account} was granted nothing for {period}")
            continue
        if found.available_gpu_ms < part:
            whose = (
                ""
                if found.binding_account == need.account
                else f" under the limit of {found.binding_account}"
            )
            short.append(
                f"{need.account} has {gpu_hours(found.available_gpu_ms)} GPU-hours left{whose} in {period}, and"
                f" {gpu_hours(part)} are needed"
            )
    if not short and unopened:
        return Cover(gpu_ms=amount, fits=None, reason=_not_known(unopened))
    if not short:
        return Cover(gpu_ms=amount, fits=True, reason=f"{gpu_hours(amount)} GPU-hours are there.")
    reason = f"{'; '.join(short)}. It is soft: its work is charged on, and comes later in the order."
    return Cover(gpu_ms=amount, fits=False, reason=reason)


def _nothing_booked(cluster: str, as_of: dt.datetime) -> str:
    then = moment(seconds(as_of))
    return f"Nothing was booked on {cluster} by {then}: --as-of reads the budgets of a later recorded time."


def _is_to_come(seen: Seen, period: str) -> bool:
    """Tell whether the grants of a period are still to come: it begins after the present, and is not open yet."""
    begins_s, _ = seen.calendar.period_bounds_s(period)
    seq = seq_of(vector_of(seen.reader, seen.as_of), seen.cluster)
    return begins_s > seen.now_s and not is_opened(seen.reader, seen.cluster, period, seq)


def _not_known(periods: Sequence[str]) -> str:
    are = "is" if len(periods) == 1 else "are"
    return f"{' and '.join(periods)} {are} not open yet: what is granted then is not known."


def _parts(seen: Seen, need: Need) -> Iterator[tuple[str, int]]:
    """Yield each period that a need touches, with what it takes there in gpu_ms, weighted and rounded up."""
    card = queries.rate_cards(seen.reader, seen.as_of).get(seen.cluster, UNWEIGHTED)
    start_s, end_s = need.span
    for period in seen.calendar.periods_between(start_s, end_s):
        first_s, last_s = seen.calendar.period_bounds_s(period)
        weighted = card.weighted(need.gpu_model, need.gpus_milli, max(first_s, start_s), min(last_s, end_s))
        yield period, -(-weighted // WEIGHT_ONE)
