"""Soft landing: a hard account's run goes on allocated only while its next slice can be set aside.

Looked at once per cycle. A run whose hold has run out gets the next slice, or is unallocated from that moment on:
it is never stopped for want of budget, and what it overshoots is at most its GPUs x one cycle (DESIGN section 7).
So is a run that became more than it was admitted for - more GPUs, heavier ones, another account: the rest of its hold
must fit as an admission would have to, and is then decided anew for what the run is now.
"""

from typing import NamedTuple

from gpuledger.database.engine import Reader, Writer
from gpuledger.events.decision import DecisionMade
from gpuledger.events.envelope import ORG_BOOK, make
from gpuledger.events.workload import ClassChanged, Started
from gpuledger.kernel.accounts import lineage
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import Clock, instant, seconds
from gpuledger.ledger import queries, store
from gpuledger.ledger.admission import SLICE_S, SOURCE
from gpuledger.ledger.append import append
from gpuledger.ledger.copying import driver
from gpuledger.ledger.periods import open_periods
from gpuledger.ledger.purse import Need, Purse
from gpuledger.ledger.rates import UNWEIGHTED
from gpuledger.ledger.ticking import catch_up

OVER_BUDGET = "over-budget"
"""Why a run became unallocated."""


class Landed(NamedTuple):
    """What a look at the runs of hard accounts did: runs that go on for a slice, runs that became unallocated."""

    extended: list[str]
    landed: list[str]


class _Due(NamedTuple):
    """A run of a hard account whose hold has run out, or was set aside for less than the run has become.

    ``held_until_s`` tells how long it is set aside for; None when it has run out, or never was.
    """

    workload: str
    run: str
    attempt: int | None
    account: str
    gpus_milli: int
    gpu_model: str | None
    held_until_s: int | None

    def need(self, now_s: int, slice_s: int) -> Need:
        """Return what must be set aside for it to go on allocated: the rest of its hold, or the next slice."""
        end_s = now_s + slice_s if self.held_until_s is None else self.held_until_s
        return Need(self.account, self.gpus_milli, self.gpu_model, (now_s, end_s))


def land(writer: Writer, cluster: str, *, clock: Clock, calendar: Calendar, slice_s: int = SLICE_S) -> Landed:
    """Set aside what each run needs that is due, oldest first, or make it unallocated.

    Args:
        writer: A transaction of its own; the caller commits it.
        cluster: The cluster.
        clock: Says which holds have run out.
        calendar: The organisation's days.
        slice_s: The time between two looks.
    """
    now_s = seconds(clock.now())
    result = Landed([], [])
    if not _due(writer, cluster, now_s):
        return result
    store.lock_book(writer, cluster)
    append(writer, cluster, [], clock=clock, calendar=calendar)  # by the policy data of this moment
    catch_up(writer, cluster, now_s, clock=clock, calendar=calendar)
    purse, events = Purse(writer, cluster, now_s, calendar), []
    org_seq = queries.sequences(writer).get(ORG_BOOK, 0)
    due = [(run, run.need(now_s, slice_s)) for run in _due(writer, cluster, now_s)]
    for run, need in due:
        if run.held_until_s is not None:  # it stands as the run occupies it, whether that fits or not
            purse.put_back(need)
    for run, need in due:
        if purse.shortfall(need) is None:
            fact: DecisionMade | ClassChanged = _slice(writer, cluster, run, need, org_seq)
            result.extended.append(f"{run.workload}/{run.run}")
        else:
            fact = ClassChanged(
                cluster=cluster, workload=run.workload, run=run.run, klass="unallocated", reason=OVER_BUDGET
            )
            result.landed.append(f"{run.workload}/{run.run}")
        events.append(make(id=f"{run.workload}/{run.run}/{now_s}", source=SOURCE, at_s=now_s, data=fact)[0])
    append(writer, cluster, events, clock=clock, calendar=calendar)
    if result.extended:  # what the opening of a period was counted on to grant is granted now
        open_periods(writer, cluster, clock=clock, calendar=calendar)
    return result


def _slice(writer: Writer, cluster: str, run: _Due, need: Need, org_seq: int) -> DecisionMade:
    from_s, to_s = need.span
    return DecisionMade(
        cluster=cluster,
        workload=run.workload,
        attempt=_attempt(writer, cluster, run) if run.attempt is None else run.attempt,
        klass="allocated",
        account=run.account,
        gpus_milli=run.gpus_milli,
        gpu_model=run.gpu_model,
        hold_gpu_ms=run.gpus_milli * (to_s - from_s),
        extends_from=instant(from_s),
        reason="the next slice fits" if run.held_until_s is None else "what the run has become fits",
        org_seq=org_seq,
    )


def _attempt(writer: Writer, cluster: str, run: _Due) -> int:
    """Return which start of its workload a run is that was never admitted."""
    return max(
        known.data.attempt
        for _, known in store.facts_of(writer, cluster, [run.workload])
        if isinstance(known.data, Started) and known.data.run == run.run
    )


def _due(connection: Reader | Writer, cluster: str, now_s: int) -> list[_Due]:
    hard = queries.hard_accounts(connection, instant(now_s))
    if not hard:
        return []
    rows = (
        driver(connection)
        .execute(
            """
        SELECT s.workload, s.run, h.attempt, s.account, s.gpus_milli, s.gpu_model,
               extract(epoch FROM h.to_at)::bigint, h.account, h.gpus_milli, h.gpu_model
        FROM ledger.segments AS s
        LEFT JOIN LATERAL (SELECT attempt, to_at, account, gpus_milli, gpu_model FROM ledger.holds AS h
                           WHERE h.book = s.book AND h.workload = s.workload AND h.run = s.run
                             AND h.until_seq IS NULL
                           ORDER BY to_at DESC LIMIT 1) AS h ON true
        WHERE s.book = %(book)s AND s.until_seq IS NULL AND s.to_at IS NULL AND s.class = 'allocated'
          AND s.from_at <= to_timestamp(%(now)s)
        ORDER BY s.from_at, s.workload, s.run
        """,
            {"book": cluster, "now": now_s},
        )
        .fetchall()
    )
    card = queries.rate_cards(connection).get(cluster, UNWEIGHTED)
    found = []
    for *run, held_until_s, account, gpus_milli, gpu_model in rows:
        # A run that nobody admitted holds nothing, so that nothing protects it: it is looked at from its start on.
        is_held = held_until_s is not None and held_until_s > now_s
        due = _Due._make((*run, held_until_s if is_held else None))
        if not hard & set(lineage(due.account)):
            continue
        if due.held_until_s is not None and account == due.account:
            span = now_s, due.held_until_s
            is_covered = card.weighted(due.gpu_model, due.gpus_milli, *span) <= card.weighted(
                gpu_model, gpus_milli, *span
            )
            if is_covered:
                continue
        found.append(due)
    return found
