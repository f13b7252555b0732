"""Which waiting work hard accounts cannot pay for: it is not funded, for no hold would be granted (DESIGN section 2).

Who asks for an admission is told so one by one, under the book's lock. A cycle orders all that waits, so it asks the
same purse about all of it, in the order in which it may come: of an account its own, of several under one hard limit
the oldest first. What is set aside for the one is not there for the next. Nothing is taken.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heapreplace

from gpuledger.database.engine import Reader
from gpuledger.events.envelope import ORG_BOOK
from gpuledger.kernel.accounts import lineage, own_path, share_unless_set
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import instant
from gpuledger.ledger import queries, state
from gpuledger.ledger.as_of import Vector, seq_of
from gpuledger.ledger.purse import Need, Purse
from gpuledger.policy.state import PendingWorkload, PolicyConfig

_Kind = tuple[str, str | None, int]
"""Who pays, for which model, for how long."""


def hard_above(
    reader: Reader, accounts: Collection[str], at_s: int, *, org_seq: int | None = None
) -> dict[str, str]:
    """Return account -> the highest hard account on its path, for those that have one.

    Args:
        reader: A snapshot.
        accounts: The accounts that are asked about.
        at_s: The instant.
        org_seq: The row of ``~org`` up to which it is read; now unless given.
    """
    hard = queries.hard_accounts(reader, instant(at_s), org_seq)
    found = {path: [node for node in lineage(path) if node in hard] for path in accounts} if hard else {}
    return {path: above[0] for path, above in found.items() if above}


def as_paid_for(
    reader: Reader,
    cluster: str,
    at_s: int,
    pending: tuple[PendingWorkload, ...],
    *,
    vector: Vector | None = None,
) -> tuple[PendingWorkload, ...]:
    """Return the same work, where hard accounts cannot pay without a minimum runtime: it would run unallocated.

    Work that an admission has set aside for already is paid for.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        at_s: The instant.
        pending: All that waits, each with the minimum runtime that would be protected.
        vector: Book -> the row up to which it is read; now unless given.
    """
    org_seq = seq_of(vector, ORG_BOOK)
    asking = [work for work in pending if work.minimum_runtime_s]
    above = hard_above(reader, {work.account for work in asking}, at_s, org_seq=org_seq)
    if not above:
        return pending
    shared = _with_shares(reader, above, at_s, org_seq)
    admitted = state.admitted(reader, cluster, at_s, seq=seq_of(vector, cluster))
    together: dict[str, list[PendingWorkload]] = defaultdict(list)
    for work in asking:
        if work.account in shared and work.workload not in admitted:
            together[above[work.account]].append(work)
    if not together:
        return pending
    calendar = queries.calendar(reader, Calendar(), vector)
    asks = _Asks(Purse(reader, cluster, at_s, calendar, as_of=vector), at_s)
    for _, waiting in sorted(together.items()):
        asks.about(in_turn(waiting))
    return tuple(
        replace(work, minimum_runtime_s=0) if work.workload in asks.short else work for work in pending
    )


def unpaid_for(
    reader: Reader,
    cluster: str,
    workload: str,
    at_s: int,
    config: PolicyConfig,
    *,
    vector: Vector | None = None,
) -> str | None:
    """Return why a workload that waits cannot be paid for by itself; None where it can, or nobody hard would pay.

    Args:
        reader: A snapshot.
        cluster: The cluster.
        workload: The workload.
        at_s: The instant.
        config: The protection cap.
        vector: Book -> the row up to which it is read; now unless given.
    """
    seq, org_seq = seq_of(vector, cluster), seq_of(vector, ORG_BOOK)
    for work in state.pending(reader, cluster, at_s, only=[workload], seq=seq):
        protected_s = config.protected_s(work.minimum_runtime_s)
        above = hard_above(reader, {work.account}, at_s, org_seq=org_seq) if protected_s else {}
        if (
            _with_shares(reader, above, at_s, org_seq)
            and workload not in state.admitted(reader, cluster, at_s, seq=seq)
        ):  # fmt: skip
            calendar = queries.calendar(reader, Calendar(), vector)
            need = Need(work.account, work.gpus_milli, work.gpu_model, (at_s, at_s + protected_s))
            return Purse(reader, cluster, at_s, calendar, as_of=vector).shortfall(need)
    return None


def in_turn(waiting: Iterable[PendingWorkload]) -> list[PendingWorkload]:
    """Return work in the order in which it is asked about: of each account its own, whose first is oldest next."""
    own: dict[str, list[PendingWorkload]] = defaultdict(list)
    for work in waiting:
        own[work.account].append(work)
    for line in own.values():
        line.sort(key=lambda work: (-work.priority, work.submitted_at_s, work.workload), reverse=True)
    heads = [(line[-1].submitted_at_s, line[-1].workload, account) for account, line in own.items()]
    heapify(heads)
    found = []
    while heads:
        _, _, account = heads[0]
        line = own[account]
        found.append(line.pop())
        if line:
            heapreplace(heads, (line[-1].submitted_at_s, line[-1].workload, account))
        else:
            heappop(heads)
    return found


class _Asks:
    """What is asked of a purse, many at once where that tells.

    Attributes:
        short: The workloads that cannot be paid for.

    Args:
        purse: What hard accounts can still promise.
        at_s: When all of it would start.
    """

    def __init__(self, purse: Purse, at_s: int) -> None:
        self._purse, self._at_s = purse, at_s
        self._least_short: dict[_Kind, int] = {}
        """The fewest milli-GPU that an account could not pay for, by model and for how long: nothing comes back."""
        self.short: set[str] = set()

    def about(self, waiting: Sequence[PendingWorkload]) -> None:
        """Take what can be paid for, one after the other, and note the others."""
        hopeful = [work for work in waiting if not self._is_hopeless(work)]
        self.short |= {work.workload for work in waiting if self._is_hopeless(work)}
        if not hopeful or self._takes(hopeful):
            return
        if len(hopeful) == 1:
            self.short.add(hopeful[0].workload)
            self._least_short[_kind(hopeful[0])] = hopeful[
                0
            ].gpus_milli  # more is hopeless, so it is the least
            return
        half = len(hopeful) // 2
        self.about(hopeful[:half])
        self.about(hopeful[half:])

    def _is_hopeless(self, work: PendingWorkload) -> bool:
        least = self._least_short.get(_kind(work))
        return least is not None and work.gpus_milli >= least

    def _takes(self, waiting: Sequence[PendingWorkload]) -> bool:
        """Take what all of them need, or nothing."""
        taken: list[list[Need]] = []
        for needs in self._needs(waiting):
            if self._purse.shortfall_of(needs) is not None:
                for back in taken:
                    self._purse.put_back(*back)
                return False
            taken.append(needs)
        return True

    def _needs(self, waiting: Sequence[PendingWorkload]) -> list[list[Need]]:
        """Return what they need by account; what would be set aside for as long on the same model is one need."""
        milli: Counter[_Kind] = Counter()
        for work in waiting:
            milli[_kind(work)] += work.gpus_milli
        needs: dict[str, list[Need]] = defaultdict(list)
        for (account, gpu_model, for_s), gpus_milli in milli.items():
            needs[account].append(Need(account, gpus_milli, gpu_model, (self._at_s, self._at_s + for_s)))
        return list(needs.values())


def _kind(work: PendingWorkload) -> _Kind:
    return work.account, work.gpu_model, work.minimum_runtime_s


def _with_shares(reader: Reader, accounts: Iterable[str], at_s: int, org_seq: int | None) -> set[str]:
    """Return the accounts whose work shares above 0 all along the path let be funded."""
    shares = queries.shares_at(reader, instant(at_s), org_seq)
    inner = queries.inner_accounts(reader, org_seq)
    paths = {path: lineage(own_path(path) if path in inner else path) for path in accounts}
    return {
        path for path, nodes in paths.items() if all(shares.get(n, share_unless_set(n)) > 0 for n in nodes)
    }
