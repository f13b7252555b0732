"""What the API answers, as frozen values. Names the client does not know are ignored; null is unknown."""

from decimal import Decimal
from typing import Any

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Anything answered."""


class Balance(Answer, frozen=True, kw_only=True):
    """What an account was granted, what it bought and what is left; amounts in gpu_ms."""

    account: str
    cluster: str
    period: str
    granted_gpu_ms: int
    transferred_gpu_ms: int
    charged_gpu_ms: int
    held_gpu_ms: int
    credited_gpu_ms: int
    expired_gpu_ms: int
    available_gpu_ms: int
    unallocated_gpu_ms: int
    binding_account: str
    own_available_gpu_ms: int
    rolled_over_gpu_ms: int


class OneBalance(Balance, frozen=True, kw_only=True):
    """One account's balance and its instant."""

    as_of: str


class Balances(Answer, frozen=True, kw_only=True):
    """Balances of accounts."""

    balances: tuple[Balance, ...]
    as_of: str


class Allocation(Answer, frozen=True, kw_only=True):
    """What a cycle issued to one account."""

    account: str
    share_ppm: int
    used_gpu_ms: int
    entitled_gpu_ms: int
    ratio: str | None
    demand_gpus: int | str
    issued_gpus: int | str


class Decision(Answer, frozen=True, kw_only=True):
    """What a cycle decided about one workload, and why."""

    workload: str
    action: str
    reason: str
    numbers: dict[str, Any]


class Cycle(Answer, frozen=True, kw_only=True):
    """The newest cycle of a cluster; ``cycle`` is None where nothing is newer than the cursor that was sent."""

    cluster: str
    cursor: int | None = None
    cycle: str | None
    supply_gpus: int | str | None
    allocations: tuple[Allocation, ...]
    decisions: tuple[Decision, ...]
    as_of: str


class StartOrder(Answer, frozen=True, kw_only=True):
    """A workload that is to start; hosts in milli-GPU, empty where the scheduler is to choose."""

    workload: str
    hosts: dict[str, int]
    reason: str


class RunOrder(Answer, frozen=True, kw_only=True):
    """A run, and why it has to leave or stays."""

    workload: str
    run: str
    reason: str


class LeaveOrder(RunOrder, frozen=True, kw_only=True):
    """A run that has to leave, when its GPUs are expected back, and whether it ends, for it cannot go on later."""

    leave_by: str
    ends: bool = False


class Directives(Answer, frozen=True, kw_only=True):
    """What the newest cycle orders; null where there is no cycle, or none after the cursor."""

    cluster: str
    cursor: int | None
    cycle: str | None
    decided_at: str | None
    stale: bool | None
    starts: tuple[StartOrder, ...]
    preemptions: tuple[LeaveOrder, ...]
    protected: tuple[RunOrder, ...]
    as_of: str


class UsageRow(Answer, frozen=True, kw_only=True):
    """GPU-time of one key."""

    key: str
    gpu_ms: int
    gpu_hours: Decimal
    used_gpu_ms: int | None
    coverage: Decimal | None


class Usage(Answer, frozen=True, kw_only=True):
    """GPU-time used."""

    rows: tuple[UsageRow, ...]
    total_gpu_ms: int
    provisional_gpu_ms: int
    estimated_gpu_ms: int
    as_of: str


class Impact(Answer, frozen=True, kw_only=True):
    """Delivered against owed; ``window`` is the headline."""

    window: Decimal | None
    hourly: Decimal | None
    raw: Decimal | None


class Utilisation(Answer, frozen=True, kw_only=True):
    """The worked part of the sampled time, on a named rung."""

    value: Decimal | None
    rung: str
    coverage: Decimal | None


class LayersRow(Answer, frozen=True, kw_only=True):
    """The four layers of one key, and the sums they were made of."""

    key: str
    installed_gpu_ms: int | None
    availability: Decimal | None
    occupancy: Decimal | None
    occupancy_with_overhead: Decimal | None
    impact: Impact
    utilisation: Utilisation
    residual_gpu_ms: int | None
    reason: str | None
    reasons: dict[str, str]
    healthy_gpu_ms: int | None
    usable_gpu_ms: int | None
    occupied_gpu_ms: int
    occupied_with_inventory_gpu_ms: int | None
    allocated_gpu_ms: int
    unallocated_gpu_ms: int
    owed_gpu_ms: int | None
    delivered_gpu_ms: int | None
    window_met_gpu_ms: int | None
    sampled_gpu_ms: int
    used_gpu_ms: int


class Layers(Answer, frozen=True, kw_only=True):
    """The four layers over a window."""

    rows: tuple[LayersRow, ...]
    by: str
    cluster: str | None
    from_: str | None = msgspec.field(name="from")
    to: str | None
    timezone: str
    targets: dict[str, Decimal | None] = {}
    as_of: str


class BudgetForecast(Answer, frozen=True, kw_only=True):
    """What an account will have been delivered by the end of the period; ``reason`` says why it is not known."""

    gpu_ms: int | None
    low_gpu_ms: int | None
    high_gpu_ms: int | None
    band_percent: int
    overrun: str | None
    history_days: int
    as_of: str | None
    reason: str | None


class BudgetRow(Answer, frozen=True, kw_only=True):
    """Budget against actual of one account in one period."""

    account: str
    cluster: str
    period: str
    budget_gpu_ms: int
    transferred_gpu_ms: int
    charged_gpu_ms: int
    held_gpu_ms: int
    credited_gpu_ms: int
    expired_gpu_ms: int
    available_gpu_ms: int
    unallocated_gpu_ms: int
    entitlement_gpu_ms: int | None
    demand_gpu_ms: int | None
    owed_gpu_ms: int | None
    delivered_gpu_ms: int | None
    variance_transfer_gpu_ms: int | None
    variance_expiry_gpu_ms: int | None
    variance_capacity_gpu_ms: int | None
    variance_demand_gpu_ms: int | None
    variance_scheduler_gpu_ms: int | None
    variance_credit_gpu_ms: int | None
    reason: str | None
    forecast: BudgetForecast | None = None


class BudgetVersusActual(Answer, frozen=True, kw_only=True):
    """Budget against actual of a period."""

    rows: tuple[BudgetRow, ...]
    cluster: str | None
    period: str | None
    periods: tuple[str, ...]
    from_: str | None = msgspec.field(name="from")
    to: str | None
    timezone: str
    as_of: str


class ClusterStatus(Answer, frozen=True, kw_only=True):
    """A cluster and what of it can be asked for."""

    cluster: str
    rows: int
    last_recorded_at: str
    rolled_up_from: str | None
    rolled_up_to: str | None
    periods: tuple[str, ...]
    reason: str | None


class Clusters(Answer, frozen=True, kw_only=True):
    """All clusters."""

    clusters: tuple[ClusterStatus, ...]
    as_of: str


class BookStatus(Answer, frozen=True, kw_only=True):
    """Where a book's chain stands."""

    book: str
    rows: int
    head: str
    last_recorded_at: str


class Books(Answer, frozen=True, kw_only=True):
    """All books, and what waits for a person."""

    books: tuple[BookStatus, ...]
    dead_letters: int
    as_of: str


class Movement(Answer, frozen=True, kw_only=True):
    """A posting that changed what an account has left; below zero it takes."""

    seq: int
    recorded_at: str
    type: str
    code: str
    account: str
    period: str
    effective_on: str
    workload: str | None
    run: str | None
    gpu_ms: int
    reverses_seq: int | None
    reason: str | None


class LimitMoved(Answer, frozen=True, kw_only=True):
    """A row that changed what the accounts below an inner one may spend together; below zero it takes."""

    seq: int
    recorded_at: str
    type: str
    account: str
    period: str
    gpu_ms: int


class Movements(Answer, frozen=True, kw_only=True):
    """A page of what moved an account's budget; ``next`` is the ``after`` of the next one.

    ``limits`` are changes of limits of the account and of those above it, on every page all of them.
    """

    account: str
    cluster: str
    movements: tuple[Movement, ...]
    limits: tuple[LimitMoved, ...] = ()
    total_gpu_ms: int
    next: int | None
    as_of: str


class PeriodRow(Answer, frozen=True, kw_only=True):
    """Where a budget period of a cluster stands."""

    cluster: str
    period: str
    state: str
    version: int
    opened_seq: int | None
    opened_at: str | None
    installed_gpu_ms: int | None
    granted_gpu_ms: int


class Periods(Answer, frozen=True, kw_only=True):
    """Budget periods."""

    periods: tuple[PeriodRow, ...]
    as_of: str


class Problem(Answer, frozen=True, kw_only=True):
    """An error as the API reports it."""

    type: str
    title: str
    status: int
    detail: str
    hint: str = ""
